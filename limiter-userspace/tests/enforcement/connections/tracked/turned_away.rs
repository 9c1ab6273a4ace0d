//! Clients that find no room are refused with an answer, or wait in line.

use std::{
    io::ErrorKind,
    net::{IpAddr, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use socket2::{Domain, Socket, Type};

use super::{
    super::{AT_ONCE, CLIENT, LIMIT, PATIENCE, PORT, policy},
    SERVER, Scene, assert_tracked,
};
use crate::PACE;

/// Connects with as many SYNs as it takes.
fn connect_within(scene: &Scene, patience: Duration) -> Result<TcpStream> {
    let (from, to): (IpAddr, IpAddr) = (CLIENT.parse()?, SERVER.parse()?);
    scene.forwarding.pair.client.enter(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
        socket.connect_timeout(&SocketAddr::new(to, PORT).into(), patience)?;
        Ok(TcpStream::from(socket))
    })
}

#[test]
fn whoever_finds_no_room_is_told_so() -> Result<()> {
    let scene = Scene::new()?;
    scene.forwarding.pair.compute_checksums()?;
    let configuration = policy("ipAddress", ", deny: reset");
    let limiter = scene.start(&format!("{configuration}connections: tracked\n"))?;
    let _open = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;
    let refused = connect_within(&scene, AT_ONCE);
    let error = refused.err().context("one more is let in")?;
    let kind = error.downcast_ref().map(std::io::Error::kind);
    ensure!(kind == Some(ErrorKind::ConnectionRefused), "{error:?}");
    Ok(())
}

#[test]
fn whoever_waits_in_line_is_let_in_when_one_has_gone() -> Result<()> {
    let scene = Scene::new()?;
    let configuration = policy("ipAddress", ", queue: {size: 8}");
    let limiter = scene.start(&format!("{configuration}connections: tracked\n"))?;
    let mut open = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;
    let queue = || -> Result<_> { Ok(limiter.status()?["limits"]["Web"]["queue"].clone()) };
    thread::scope(|scope| {
        let waiting = scope.spawn(|| connect_within(&scene, PATIENCE));
        while queue()?["waiting"] != 1 {
            ensure!(!waiting.is_finished(), "nobody waits: {}", queue()?);
            thread::sleep(PACE);
        }
        drop(open.pop());
        let client = waiting.join().expect("the client does not panic")?;
        open.push((client, scene.server.accept()?));
        anyhow::Ok(())
    })?;
    assert_tracked(&limiter, LIMIT as u64)?;
    let queue = queue()?;
    ensure!(queue["resumed"] == 1 && queue["waiting"] == 0, "{queue}");
    Ok(())
}
