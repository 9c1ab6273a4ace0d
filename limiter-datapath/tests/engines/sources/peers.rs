//! Peers that complete TCP handshakes with a host.

use std::{
    io::ErrorKind,
    net::{IpAddr, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use limiter_datapath::kernel::monotonic_now;
use testbed::{Namespace, Pair};

use super::scene::Scene;

/// The port that hosts listen on.
pub(super) const PORT: u16 = 7;

/// A pair of namespaces in both families. The server answers any IPv4 source through the client,
/// which ignores replies to other hosts.
pub(super) fn pair() -> Result<Pair> {
    let parse = |addresses: [&str; 2]| -> Result<Vec<_>> {
        Ok(addresses
            .map(str::parse)
            .into_iter()
            .collect::<Result<_, _>>()?)
    };
    let pair = Pair::new(
        &parse(["10.0.0.1/24", "2001:db8:1::1/64"])?,
        &parse(["10.0.0.2/24", "2001:db8:2::2/64"])?,
    )?;
    pair.server
        .ip(&["route", "add", "default", "via", "10.0.0.1"])?;
    Ok(pair)
}

/// Connects from a namespace to an address, and closes the connection.
pub(super) fn connect(namespace: &Namespace, to: &str) -> Result<()> {
    let to: IpAddr = to.parse()?;
    namespace.enter(|| {
        match TcpStream::connect_timeout(&SocketAddr::from((to, PORT)), Duration::from_secs(5)) {
            // The testbed's listener resets accepted connections.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
            connected => connected
                .with_context(|| format!("cannot connect to {to}"))
                .map(drop),
        }
    })
}

/// Checks every millisecond, for half a minute: an emulated machine is slow.
pub(super) fn wait_for<T>(mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let end = monotonic_now() + 30_000_000_000;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        ensure!(
            monotonic_now() < end,
            "it has not happened within half a minute"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the datapath knows a source; returns all known sources.
pub(super) fn wait(scene: &Scene) -> Result<Vec<String>> {
    wait_for(|| Ok(Some(scene.everybody()?).filter(|everybody| !everybody.is_empty())))
        .context("nobody is known")
}
