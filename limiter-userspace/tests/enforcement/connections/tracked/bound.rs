//! How far connections may exceed the bound, and how to hold it.

use std::{
    net::{IpAddr, SocketAddr},
    thread,
};

use anyhow::{Result, ensure};
use socket2::{Domain, Socket, Type};

use super::{
    super::{AT_ONCE, CLIENT, LIMIT, PORT},
    SERVER, Scene, assert_tracked, tracked,
};

/// How many a client begins to open at one moment.
const TOGETHER: usize = 100;

/// A limit of new connections beside the limit of open ones.
fn with_new_connections() -> String {
    let limit = format!(
        "limits: {{New: {{id: ipAddress, cost: new-connections, burst: {LIMIT}, count: 1, period: 10s, \
         match: {{protocol: tcp, destination-port: {PORT}}}}}, "
    );
    tracked("ipAddress").replacen("limits: {", &limit, 1)
}

/// Begins to open all at one moment; returns the connections that open soon.
fn open_together(scene: &Scene) -> Result<Vec<Socket>> {
    let (from, to): (IpAddr, IpAddr) = (CLIENT.parse()?, SERVER.parse()?);
    let sockets = scene.forwarding.pair.client.enter(|| {
        let mut sockets = Vec::new();
        for _ in 0..TOGETHER {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.bind(&SocketAddr::new(from, 0).into())?;
            socket.set_nonblocking(true)?;
            // The connection is on its way.
            let _ = socket.connect(&SocketAddr::new(to, PORT).into());
            sockets.push(socket);
        }
        Ok(sockets)
    })?;
    // Less than the second after which the client repeats its SYNs.
    thread::sleep(AT_ONCE);
    let is_open = |socket: &Socket| socket.peer_addr().is_ok();
    Ok(sockets.into_iter().filter(is_open).collect())
}

/// Handshakes that began while there was room all become connections; a limit of new connections bounds
/// their number.
#[test]
fn handshakes_begun_together_are_bounded_by_a_limit_of_new_connections() -> Result<()> {
    for is_bounded in [false, true] {
        let scene = Scene::new()?;
        let configuration = if is_bounded {
            with_new_connections()
        } else {
            tracked("ipAddress")
        };
        let limiter = scene.start(&configuration)?;
        assert_tracked(&limiter, 0)?;
        let open = open_together(&scene)?;
        println!(
            "{} of {TOGETHER} are open at once; bounded by new connections: {is_bounded}",
            open.len()
        );
        ensure!(open.len() >= LIMIT, "only {} are open", open.len());
        ensure!(!is_bounded || open.len() <= LIMIT + 1, "{}", open.len());
        assert_tracked(&limiter, open.len() as u64)?;
        // No other client comes in until enough have gone.
        scene.assert_full(CLIENT)?;
    }
    Ok(())
}
