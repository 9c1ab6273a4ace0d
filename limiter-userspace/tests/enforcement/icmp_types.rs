//! Limits on ICMP messages by type.

use std::{
    io::ErrorKind,
    net::{IpAddr, UdpSocket},
};

use anyhow::{Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, RawSender};

use crate::{PATIENCE, pair, server_for, start, wait};

/// A port without a socket.
const CLOSED: u16 = 7000;

const PINGS_OF_EACH: usize = 1000;

/// The server still learns that a port is closed when its limit has no token left for pings.
#[test]
fn a_spent_limit_on_pings_lets_errors_pass() -> Result<()> {
    const PINGS: &str = "limits: {Pings: {id: total, cost: packets, match: {icmp-type: echo-request}, burst: 1, count: 1, period: 1h}}\n";
    let clients: [IpAddr; 2] = ["10.77.0.2".parse()?, "fd77:1:1::1".parse()?];
    let pair = pair()?;
    let limiter = start(&pair, PINGS)?;
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    for client in clients {
        let ping = Frame::new(client, server_for(client)?).echo(b"hello")?;
        sender.send_frames(&vec![ping; PINGS_OF_EACH])?;
    }
    let counted = |name| -> Result<_> { Ok(limiter.status()?["limits"]["Pings"][name].as_u64()) };
    let all_but_one = Some(2 * PINGS_OF_EACH as u64 - 1);
    wait(|| Ok(counted("dropped_packets")? == all_but_one))?;
    for client in clients {
        let server = server_for(client)?;
        let socket = pair.server.enter(|| Ok(UdpSocket::bind((server, 0))?))?;
        socket.connect((client, CLOSED))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.send(b"hello")?;
        let error = socket.recv(&mut [0]).expect_err("nobody answers");
        ensure!(error.kind() == ErrorKind::ConnectionRefused, "{error}");
    }
    assert_eq!(counted("passed_packets")?, Some(1));
    assert_eq!(counted("dropped_packets")?, all_but_one);
    assert!(limiter.stop()?.success());
    Ok(())
}
