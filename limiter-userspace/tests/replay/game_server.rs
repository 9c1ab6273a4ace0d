//! The example for game servers, in a flood of forged queries.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context as _, Result, ensure};
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::replay;

const SECOND: u64 = 1_000_000_000;
const PORT: u16 = 27015;

/// When the flood begins, and how long it lasts.
const CALM: u64 = 60 * SECOND;
const FLOOD: u64 = 6 * SECOND;
const FORGED_PER_SECOND: u64 = 20_000;

/// A player's packets per second.
const PER_SECOND: u64 = 66;

/// A query for the server's state (`A2S_INFO`).
const QUERY: &[u8] = b"\xff\xff\xff\xffTSource Engine Query\0";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Known,
    New,
    Forger,
}

fn packet(at: u64, source: IpAddr, payload: &[u8]) -> Result<Packet> {
    let server = Ipv4Addr::new(203, 0, 113, 1);
    let frame = Frame::new(source, server.into()).udp(27005, PORT, payload)?;
    Ok(Packet::whole(1_700_000_000 * SECOND + at, frame))
}

/// Players from the start on, and others from the flood's start on; and a new forged address with each query.
fn sent() -> Result<Vec<(u64, Sender, Packet)>> {
    let mut sent = Vec::new();
    for (sender, network, from) in [(Sender::Known, 198, 0), (Sender::New, 192, CALM)] {
        for player in 1..=5 {
            let source = IpAddr::from([network, 0, 2, player]);
            // Each sends between the others.
            let times = (from + u64::from(player) * 3_000_000..CALM + FLOOD)
                .step_by(usize::try_from(SECOND / PER_SECOND)?);
            for at in times {
                sent.push((at, sender, packet(at, source, &[0; 60])?));
            }
        }
    }
    let step = usize::try_from(SECOND / FORGED_PER_SECOND)?;
    for (number, at) in (0u32..).zip((CALM..CALM + FLOOD).step_by(step)) {
        // An odd factor: no address comes twice.
        let source = Ipv4Addr::from(number.wrapping_mul(0x9e37_79b1) >> 1);
        sent.push((at, Sender::Forger, packet(at, source.into(), QUERY)?));
    }
    sent.sort_by_key(|(at, ..)| *at);
    Ok(sent)
}

#[test]
fn players_go_on_while_forged_queries_come() -> Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/game-server.yaml");
    let config = std::fs::read_to_string(path)?;
    let (senders, packets): (Vec<_>, Vec<_>) = sent()?
        .into_iter()
        .map(|(_, sender, packet)| (sender, packet))
        .unzip();
    let replayed = replay(&config, &PCAP.write(&packets), false, &["--json"])?;
    ensure!(replayed.success, "{}", replayed.stderr);
    let lines = replayed.lines()?;
    let part_passed = |of: Sender| {
        let of = senders
            .iter()
            .zip(&lines)
            .filter(|(sender, _)| **sender == of);
        let verdicts: Vec<_> = of.map(|(_, line)| line["verdict"] == "pass").collect();
        let passed = verdicts.iter().filter(|passed| **passed).count();
        // In thousandths.
        (passed * 1000).checked_div(verdicts.len())
    };
    let part_passed = |of| part_passed(of).context("none was sent");
    assert_eq!(part_passed(Sender::Known)?, 1000);
    // Until they come again, 0.2 s after their first refusal.
    let new = part_passed(Sender::New)?;
    ensure!(new >= 950, "{new}");
    let forged = part_passed(Sender::Forger)?;
    ensure!(forged <= 300, "{forged}");
    // A refusal names the limit that refuses.
    let mut reserved = lines.iter().filter(|line| line["reason"] == "reserved");
    ensure!(reserved.all(|line| line["limit"] == "Strangers"));
    Ok(())
}
