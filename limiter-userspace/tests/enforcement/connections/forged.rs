//! What nobody can forge: only the network stack says what is open.

use anyhow::{Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, RawSender};

use super::{
    CLIENT, LIMIT, PORT, Server, assert_counted, assert_full, connect, fill, policy, start,
};
use crate::{pair, take_turn};

/// Forged SYNs and ACKs, of a client or of nobody, take no place and give none back.
#[test]
fn forged_segments_change_no_count() -> Result<()> {
    let _turn = take_turn();
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
    let again = connect(&pair, CLIENT);
    ensure!(again.is_ok(), "the place is not given back: {again:?}");
    Ok(())
}
