//! A source proven on one node, over IPv6 or by a query, is proven on another.

use std::{
    iter::repeat_n,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::SystemTime,
};

use anyhow::{Context as _, Result, ensure};
use limiter_common::cookie::Secret;
use testbed::{Frame, dns_cookie, dns_cookie_query};

use super::{
    FLOOD, LIMITS, SOON, client, fleet_with, known, send_frames, shake_hands_at, wait_for,
};
use crate::peers::fleet::{Fleet, store, write_secret};

const SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";

/// Returns the IPv6 address of a node, or of the store on the link to it.
fn address(number: u16, last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd80, 0, 0, number, 0, 0, 0, last)
}

/// Returns a client's IPv6 address. Each client has its own /64.
fn client_v6(number: u16, last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd81, 0, 0, number, 0, 0, 0, last)
}

/// Gives nodes and clients IPv6 addresses.
fn add_ipv6(fleet: &Fleet) -> Result<()> {
    let store = fleet.store.namespace();
    let add = |namespace: &testbed::Namespace, address: Ipv6Addr, length: u8, interface: &str| {
        let address = format!("{address}/{length}");
        namespace.ip(&["-6", "address", "add", &address, "dev", interface, "nodad"])
    };
    for number in 1..=3 {
        add(store, client_v6(number, 1), 128, "lo")?;
    }
    for (number, node) in (1..).zip(&fleet.store.nodes) {
        add(store, address(number, 1), 64, &format!("n{number}"))?;
        add(node, address(number, 2), 64, store::UPLINK)?;
        let via = address(number, 1).to_string();
        node.ip(&["-6", "route", "add", "fd81::/16", "via", &via])?;
    }
    Ok(())
}

/// Sends ten packets of one source to the second node, over either family; returns how many pass.
fn ten(fleet: &Fleet, source: IpAddr, port: u16) -> Result<u64> {
    let node = match source {
        IpAddr::V4(_) => store::node_address(2).parse()?,
        IpAddr::V6(_) => address(2, 2).into(),
    };
    let frame = || Frame::new(source, node).udp(4321, port, b"a packet");
    send_frames(fleet, 2, repeat_n((), 10).map(|()| frame()))
}

/// Sends a node packets of unknown sources until there is a shortage.
fn flood(fleet: &Fleet, number: usize, port: u16) -> Result<()> {
    let node: IpAddr = store::node_address(number).parse()?;
    let forged = (0..FLOOD).map(|last| {
        let source = Ipv4Addr::from(0xc612_0000 + last);
        Frame::new(source.into(), node).udp(4321, port, b"no query")
    });
    send_frames(fleet, number, forged)?;
    let status = fleet.nodes[number - 1].status()?;
    ensure!(status["standing"]["shortage"].is_object(), "{status:#}");
    Ok(())
}

/// A client that completes a handshake over IPv6, or shows one node a valid DNS cookie, is served first on the other node:
/// over IPv6 its whole /64, but no address outside. A forged cookie proves no source on either.
#[test]
fn sources_over_ipv6_and_with_dns_cookies_are_served_first_on_all() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let secrets = directory.path().join("secrets");
    write_secret(&secrets, SECRET)?;
    let limits = LIMITS.replace("destination-port: 9", "destination-port: 53");
    let limits = format!(
        "dns-cookies: {{secret-file: {}}}\n{limits}",
        secrets.display()
    );
    let fleet = fleet_with(&["a", "b"], &limits, "")?;
    add_ipv6(&fleet)?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    let shaken = client_v6(1, 1);
    // A link-local address takes a moment, and neighbour discovery needs it.
    crate::wait(|| {
        Ok(shake_hands_at(&fleet, 1, address(1, 2).into(), &shaken.to_string()).is_ok())
    })?;
    wait_for(b, &shaken.to_string(), "fleet")?;
    ensure!(known(a, &shaken.to_string())?["why"] == "handshake");

    flood(&fleet, 1, 53)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let issued = u32::try_from(now.as_secs())?;
    let query = |source: IpAddr, secret: u128| {
        let secret = Secret::new(secret.to_be_bytes()).context("no secret")?;
        let node = match source {
            IpAddr::V4(_) => store::node_address(1).parse()?,
            IpAddr::V6(_) => address(1, 2).into(),
        };
        let query = dns_cookie_query(&dns_cookie(&secret, source, issued));
        Frame::new(source, node).udp(4321, 53, &query)
    };
    let secret = u128::from_str_radix(SECRET, 16)?;
    let forger: IpAddr = client(4).parse()?;
    ensure!(send_frames(&fleet, 1, [query(forger, secret + 1)].into_iter())? == 0);
    let shown: [IpAddr; 2] = [client(1).parse()?, client_v6(3, 1).into()];
    for source in shown {
        let passed = send_frames(&fleet, 1, [query(source, secret)].into_iter())?;
        ensure!(passed == 1, "{source}");
        let took = wait_for(b, &source.to_string(), "fleet")?;
        ensure!(took < SOON, "{source}: {took:?}");
    }

    flood(&fleet, 2, 53)?;
    for stranger in [forger, client_v6(2, 1).into()] {
        ensure!(ten(&fleet, stranger, 53)? == 0, "{stranger}");
    }
    let [v4, v6] = shown;
    // A neighbour in its /64 is the same source.
    for source in [v4, v6, shaken.into(), client_v6(1, 9).into()] {
        ensure!(ten(&fleet, source, 53)? == 10, "{source}");
    }
    ensure!(known(a, &forger.to_string())?["why"] != "handshake");
    ensure!(known(b, &forger.to_string())?["why"] != "fleet");
    a.show(&["untrust", &shaken.to_string()])?;
    wait_for(b, &shaken.to_string(), "nothing")?;
    ensure!(ten(&fleet, shaken.into(), 53)? == 0);
    fleet.stop()
}
