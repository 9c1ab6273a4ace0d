//! Limits on handshakes: completed handshakes spend tokens, forged segments do not.

use anyhow::{Context as _, Result, ensure};
use limiter_datapath::kernel::possible_cpus;
use testbed::{CLIENT_INTERFACE, Frame, Pair, RawSender};

use super::{
    CLIENT, CLIENT_V6, PORT, Server, connect,
    forged::{HANDSHAKES, RAW, begin_together},
    start,
};
use crate::{pair, server_for, syn_cookies::set};

/// How many handshakes an address may complete per hour.
const BURST: usize = 3;

fn policy(id: &str) -> String {
    format!(
        "limits: {{Web: {{id: {id}, cost: handshakes, burst: {BURST}, count: 1, period: 1h, \
         match: {{protocol: tcp, destination-port: {PORT}}}}}}}\n"
    )
}

/// Sends segments from an address that begin connections or end handshakes, but belong to none.
fn forge(pair: &Pair, source: &str) -> Result<()> {
    let frame = Frame::new(source.parse()?, server_for(source.parse()?)?);
    let mut frames = Vec::new();
    for port in 1000..1200 {
        frames.push(frame.tcp_syn(port, PORT, 1)?);
        frames.push(frame.tcp_ack(port, PORT, 2, 3)?);
    }
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&frames)?;
    Ok(())
}

/// Completes all handshakes that the limit admits, and fails unless the next one is refused.
fn spend(pair: &Pair, server: &Server, client: &str) -> Result<()> {
    for number in 0..BURST {
        // Closing a connection returns no token.
        let opened =
            connect(pair, client).with_context(|| format!("{client}: handshake {number}"))?;
        drop((opened, server.accept()?));
    }
    ensure!(
        connect(pair, client).is_err(),
        "{client} completes one more"
    );
    Ok(())
}

#[test]
fn only_completed_handshakes_are_spent() -> Result<()> {
    for syn_cookies in ["1", "2"] {
        let pair = pair()?;
        // A SYN cookie in a segment with a wrong checksum is ignored.
        pair.compute_checksums()?;
        set(&pair.server, "tcp_syncookies", syn_cookies)?;
        let server = Server::new(&pair.server)?;
        let limiter = start(&pair, &policy("ipAddress"))?;
        for client in [CLIENT, CLIENT_V6] {
            forge(&pair, client)?;
            spend(&pair, &server, client)?;
            forge(&pair, client)?;
        }
        let status = limiter.status()?;
        let dropped = status["limits"]["Web"]["dropped_packets"].as_u64();
        ensure!(dropped >= Some(2), "{status}");
        assert!(limiter.stop()?.success());
    }
    Ok(())
}

/// Both families share the tokens of `id: total`.
#[test]
fn all_sources_share_the_limit_of_all() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("total"))?;
    spend(&pair, &server, CLIENT)?;
    ensure!(
        connect(&pair, CLIENT_V6).is_err(),
        "another address completes one"
    );
    let explained = limiter.explain(CLIENT_V6)?;
    let limit = &explained["limits"][0];
    ensure!(
        limit["remaining"] == 0 && limit["id"] == "total",
        "{explained}"
    );
    limiter.show(&["reset", "--all"])?;
    spend(&pair, &server, CLIENT_V6)?;
    assert!(limiter.stop()?.success());
    Ok(())
}

/// Many handshakes begin while there are tokens, and end together.
#[test]
fn handshakes_begun_together_do_not_pass_the_bound() -> Result<()> {
    let pair = pair()?;
    set(&pair.server, "tcp_max_syn_backlog", "4096")?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("ipAddress"))?;
    let frame = Frame::new(RAW.parse()?, "10.77.0.1".parse()?);
    let replies = begin_together(&pair, &frame, HANDSHAKES)?;
    let acks = replies.iter();
    let acks: Vec<_> = acks
        .map(|(port, number)| frame.tcp_ack(*port, PORT, 101, number.wrapping_add(1)))
        .collect::<Result<_>>()?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&acks)?;
    let mut completed = Vec::new();
    while let Ok(accepted) = server.accept() {
        completed.push(accepted);
    }
    let bound = BURST + 64 * usize::try_from(possible_cpus())?;
    println!(
        "{} of {HANDSHAKES} are completed, at most {bound} may be",
        completed.len()
    );
    ensure!(
        (BURST..=bound).contains(&completed.len()),
        "{}",
        completed.len()
    );
    assert!(limiter.stop()?.success());
    Ok(())
}
