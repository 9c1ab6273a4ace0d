//! Forged segments: only the network stack decides that a connection is open.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use limiter_datapath::kernel::possible_cpus;
use testbed::{CLIENT_INTERFACE, CLIENT_MAC, Frame, Pair, RawSender, Recorder, SERVER_INTERFACE};

use super::{
    CLIENT, LIMIT, PORT, Server, assert_counted, assert_full, connect, counted, fill, policy,
    start, start_with,
};
use crate::{pair, syn_cookies::set, wait};

/// Forged SYNs and ACKs, with a client's address or an unused one, take no slot and give none back.
#[test]
fn forged_segments_change_no_count() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("ipAddress", ""))?;
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    let mut frames = Vec::new();
    for source in [CLIENT, "10.77.0.99"] {
        let frame = Frame::new(source.parse()?, "10.77.0.1".parse()?);
        for port in 1000..1100 {
            frames.push(frame.tcp_syn(port, PORT, 1)?);
            frames.push(frame.tcp_ack(port, PORT, 2, 3)?);
        }
    }
    sender.send_frames(&frames)?;
    assert_counted(&limiter, 0)?;
    let mut open = fill(&pair, &server, CLIENT)?;
    sender.send_frames(&frames)?;
    assert_counted(&limiter, LIMIT as u64)?;
    assert_full(&pair, CLIENT)?;
    drop(open.pop());
    // At once, unless a poll is just running.
    wait(|| Ok(connect(&pair, CLIENT).is_ok()))
}

/// An unused address, so that no network stack answers for it.
pub(super) const RAW: &str = "10.77.0.99";

/// Handshakes begun while there was room: more than the limit.
pub(super) const HANDSHAKES: u16 = 400;

/// Returns the client's port and the server's sequence number of a SYN-ACK.
fn answered(frame: &[u8]) -> Option<(u16, u32)> {
    const SYN_ACK: u8 = 0x12;
    let ip = frame.get(14..)?;
    let tcp = ip.get(usize::from(ip.first()? & 15) * 4..)?;
    let port = |at| Some(u16::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
    let is_reply = ip.get(9) == Some(&6) && port(0)? == PORT && tcp.get(13) == Some(&SYN_ACK);
    let number = u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?);
    is_reply.then_some((port(2)?, number))
}

/// Many handshakes begin while there is room. Once it is used up, their last ACKs are refused.
#[test]
fn handshakes_begun_together_do_not_pass_the_bound() -> Result<()> {
    for mode in ["generic", "native"] {
        let open = complete_together(mode)?;
        let bound = LIMIT as u64 + 64 * u64::from(possible_cpus());
        println!("{mode}: {open} of {HANDSHAKES} are open, at most {bound} may be");
        ensure!((LIMIT as u64..=bound).contains(&open), "{open} are open");
    }
    Ok(())
}

/// Returns how many of the handshakes become connections.
fn complete_together(mode: &str) -> Result<u64> {
    let pair = pair()?;
    set(&pair.server, "tcp_max_syn_backlog", "4096")?;
    let _server = Server::new(&pair.server)?;
    let limiter = start_with(&pair, &policy("ipAddress", ""), &["--mode", mode])?;
    let frame = Frame::new(RAW.parse()?, "10.77.0.1".parse()?);
    let replies = begin_together(&pair, &frame, HANDSHAKES)?;
    assert_counted(&limiter, 0)?;
    let acks = replies.iter();
    let acks: Vec<_> = acks
        .map(|(port, number)| frame.tcp_ack(*port, PORT, 101, number.wrapping_add(1)))
        .collect::<Result<_>>()?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&acks)?;
    thread::sleep(Duration::from_millis(100));
    counted(&limiter)
}

/// Begins handshakes from an unused source; returns the client's port and the server's sequence number of each.
pub(super) fn begin_together(
    pair: &Pair,
    frame: &Frame,
    handshakes: u16,
) -> Result<Vec<(u16, u32)>> {
    let mac = CLIENT_MAC.map(|byte| format!("{byte:02x}")).join(":");
    pair.server
        .ip(&["neigh", "add", RAW, "lladdr", &mac, "dev", SERVER_INTERFACE])?;
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    let recorder = Recorder::new(&pair.client, CLIENT_INTERFACE)?;
    let ports = 2000..2000 + handshakes;
    let syns: Vec<_> = ports
        .map(|port| frame.tcp_syn(port, PORT, 100))
        .collect::<Result<_>>()?;
    // In small groups, so that the recorder misses no reply.
    for syns in syns.chunks(20) {
        sender.send_frames(syns)?;
        thread::sleep(Duration::from_millis(20));
    }
    // Time for the last reply.
    thread::sleep(Duration::from_millis(200));
    let replies = recorder.finish()?;
    let replies: Vec<_> = replies
        .iter()
        .filter_map(|one| answered(&one.data))
        .collect();
    ensure!(
        replies.len() >= usize::from(handshakes),
        "only {} are answered",
        replies.len()
    );
    Ok(replies)
}

/// The client believes that its connection is open, so a reset tells it otherwise.
#[test]
fn the_last_ack_of_a_handshake_without_room_is_reset() -> Result<()> {
    const RST: u8 = 0x04;
    let pair = pair()?;
    pair.compute_checksums()?;
    let _server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("ipAddress", ", deny: reset"))?;
    let frame = Frame::new(RAW.parse()?, "10.77.0.1".parse()?);
    let mut replies = begin_together(&pair, &frame, u16::try_from(LIMIT)? + 1)?;
    replies.sort_unstable();
    replies.dedup();
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    let ack = |(port, number): &(u16, u32)| frame.tcp_ack(*port, PORT, 101, number.wrapping_add(1));
    let (last, others) = replies.split_last().context("no handshake")?;
    let others: Vec<_> = others.iter().map(ack).collect::<Result<_>>()?;
    sender.send_frames(&others)?;
    assert_counted(&limiter, LIMIT as u64)?;
    let recorder = Recorder::new(&pair.client, CLIENT_INTERFACE)?;
    sender.send_frames(&[ack(last)?])?;
    thread::sleep(Duration::from_millis(200));
    let reset = |data: &[u8]| {
        let tcp = data.get(14 + 20..)?;
        let port = u16::from_be_bytes(*tcp.get(2..)?.first_chunk()?);
        Some(port == last.0 && tcp.get(13)? & RST != 0)
    };
    let frames = recorder.finish()?;
    ensure!(
        frames.iter().any(|one| reset(&one.data) == Some(true)),
        "no reset among {} frames",
        frames.len()
    );
    assert_counted(&limiter, LIMIT as u64)?;
    Ok(())
}
