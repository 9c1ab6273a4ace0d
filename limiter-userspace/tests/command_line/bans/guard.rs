//! Whom nobody bans by mistake.

use std::net::{SocketAddr, TcpListener, TcpStream};

use anyhow::{Context as _, Result, ensure};
use testbed::SERVER_INTERFACE;

use super::{is_banned, pair, start};
use crate::{assert_fails, succeed};

#[test]
fn those_without_whom_the_host_is_lost_are_not_banned() -> Result<()> {
    let pair = pair()?;
    let route = ["route", "add", "default", "via", "10.77.0.254", "dev"];
    pair.server
        .ip(&[&route[..], &[SERVER_INTERFACE]].concat())?;
    let limiter = start(&pair)?;
    let address: SocketAddr = "[fd77::1]:22".parse()?;
    let listener = pair
        .server
        .enter(|| TcpListener::bind(address).context("the namespace's ports are free"))?;
    let _session = pair
        .client
        .enter(|| TcpStream::connect(address).context("the server is reachable"))?;
    let _accepted = listener.accept()?;
    for (ban, why) in [
        ("10.77.0.1", "it is an address of this host"),
        ("10.77.0.254", "it is a default gateway"),
        ("10.77.0.252/30", "10.77.0.254 in it is a default gateway"),
        ("fd77::1", "it is an address of this host"),
        ("fd77::2", "it is the peer of an SSH session"),
        ("fd77::2/127", "fd77::2 in it is the peer of an SSH session"),
        ("127.0.0.1", "it is the loopback"),
        ("127.9.0.0/16", "it is the loopback"),
        ("::1", "it is the loopback"),
    ] {
        let told = format!("{ban} is not banned: {why}; --force bans it all the same");
        // Nobody else is banned either.
        let mut command = limiter.command(&["ban", "198.51.100.7", ban]);
        assert_fails(&mut command, &[&told])?;
    }
    // The session of whoever asks is theirs alone to know.
    let mut command = limiter.command(&["ban", "203.0.113.9"]);
    command.env("SSH_CONNECTION", "203.0.113.9 50000 10.77.0.1 2222");
    let told = "203.0.113.9 is not banned: it is the peer of an SSH session; --force bans it all \
                the same";
    assert_fails(&mut command, &[told])?;
    ensure!(limiter.show(&["bans"])? == "0 bans of up to 524 288\n");

    succeed(&mut limiter.command(&["ban", "10.77.0.254", "--force"]))?;
    ensure!(is_banned(&pair, &limiter, "10.77.0.254")?);
    Ok(())
}
