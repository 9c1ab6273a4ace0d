//! Several sources under one policy: ranges, overrides, VLAN tags.

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use testbed::{
    CLIENT_INTERFACE, Frame, Load, Pair, RawSender, SendReport, Tag, Tally, UdpSink, UdpSource,
};

use crate::{Rate, Window, assert_exact, pair, server_for, start};

const PORT: u16 = 7000;
const DURATION: Duration = Duration::from_millis(800);

/// Sends from all clients at once, each with its load.
fn send(pair: &Pair, clients: &[(&str, Load)]) -> Result<(Tally, Vec<SendReport>)> {
    let sink = UdpSink::new(&pair.server, PORT)?;
    let sent = thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter()
            .map(|(client, load)| {
                scope.spawn(move || {
                    let client: IpAddr = client.parse()?;
                    let destination = SocketAddr::new(server_for(client)?, PORT);
                    UdpSource::new(&pair.client, client, destination)?.send(*load, 32)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no sender panics"))
            .collect::<Result<Vec<_>>>()
    })?;
    let tally = sink.finish()?;
    assert_eq!(tally.lost, 0, "the sink lost packets");
    Ok((tally, sent))
}

fn steady(per_second: u32) -> Result<Load> {
    let per_second = NonZeroU32::new(per_second).context("a rate of 0")?;
    Ok(Load::steady(per_second, DURATION))
}

/// Together the addresses exceed the /48's limit, alone none exceeds its own. Another /48 is
/// unaffected.
#[test]
fn addresses_of_one_48_share_its_budget() -> Result<()> {
    let range = Rate {
        burst: 200,
        per_second: 400,
    };
    let pair = pair()?;
    let limiter = start(
        &pair,
        &format!(
            "limits:\n  PacketsPerIPAddress: {{burst: 1000, count: 1000, period: 1s}}\n  \
             PacketsPerIPv6Range: {}\n",
            range.yaml()
        ),
    )?;
    let members = ["fd77:1:1::1", "fd77:1:1:2::1", "fd77:1:1:3::1"];
    let other = "fd77:1:2::1";
    let mut clients = Vec::new();
    for client in members {
        clients.push((client, steady(600)?));
    }
    clients.push((other, steady(300)?));
    let (tally, sent) = send(&pair, &clients)?;

    let arrived = members
        .iter()
        .map(|client| Ok(tally.of(client.parse()?)))
        .collect::<Result<Vec<_>>>()?;
    let members_sent = &sent[..members.len()];
    assert_exact(
        range,
        arrived.iter().map(|count| count.packets).sum(),
        Window {
            first_ns: members_sent
                .iter()
                .map(|sent| sent.first_ns)
                .min()
                .context("three")?,
            last_ns: members_sent
                .iter()
                .map(|sent| sent.last_ns)
                .min()
                .context("three")?,
            paused: members_sent.iter().map(|sent| sent.paused).sum(),
        },
        Window {
            first_ns: arrived
                .iter()
                .map(|count| count.first_ns)
                .min()
                .context("three")?,
            last_ns: arrived
                .iter()
                .map(|count| count.last_ns)
                .max()
                .context("three")?,
            paused: Duration::ZERO,
        },
        1,
    );
    assert!(
        arrived.iter().all(|count| count.packets > 0),
        "every address must get a share"
    );
    assert_eq!(
        tally.of(other.parse()?).packets,
        sent[members.len()].packets
    );

    let explanation = limiter.explain(members[0])?;
    assert_eq!(explanation["limits"][1]["limit"], "PacketsPerIPv6Range");
    assert_eq!(explanation["limits"][1]["id"], "fd77:1:1::/48");
    Ok(())
}

/// The override's id gets its own rate, its neighbour the default.
#[test]
fn an_override_holds_for_its_id_alone() -> Result<()> {
    let default = Rate {
        burst: 100,
        per_second: 200,
    };
    let special = Rate {
        burst: 500,
        per_second: 2_000,
    };
    let pair = pair()?;
    let limiter = start(
        &pair,
        &format!(
            "limits:\n  PacketsPerIPAddress: {}\noverrides:\n  PacketsPerIPAddress:10.77.0.3: {}\n",
            default.yaml(),
            special.yaml()
        ),
    )?;
    let load = Load::saturating(DURATION);
    let (tally, sent) = send(&pair, &[("10.77.0.2", load), ("10.77.0.3", load)])?;
    for ((client, rate), sent) in [("10.77.0.2", default), ("10.77.0.3", special)]
        .into_iter()
        .zip(sent)
    {
        let arrived = tally.of(client.parse()?);
        assert_exact(rate, arrived.packets, sent.into(), arrived.into(), 1);
    }
    let source = |address: &str| -> Result<_> {
        Ok(limiter.explain(address)?["limits"][0]["source"].clone())
    };
    assert_eq!(source("10.77.0.2")?, "default");
    assert_eq!(source("10.77.0.3")?, "override 10.77.0.3");
    Ok(())
}

/// A packet is charged to the same bucket under any VLAN tags.
#[test]
fn two_vlan_tags_do_not_hide_a_packet() -> Result<()> {
    let pair = pair()?;
    let limiter = start(
        &pair,
        "limits: {PacketsPerIPAddress: {burst: 30, count: 1, period: 1h}}",
    )?;
    let client: IpAddr = "10.77.0.2".parse()?;
    let frame = Frame::new(client, server_for(client)?);
    let double = frame
        .clone()
        .tagged(Tag::Service(7))
        .tagged(Tag::Customer(5));
    let single = frame.clone().tagged(Tag::Customer(5));
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    for kind in [frame, single, double] {
        let frames = vec![kind.udp(1, PORT, b"x")?; 20];
        assert_eq!(sender.send_frames(&frames)?.packets, 20);
    }
    let status = limiter.status()?;
    assert_eq!(status["reasons"]["within_limits"], 30);
    assert_eq!(status["reasons"]["over_limit"], 30);
    Ok(())
}
