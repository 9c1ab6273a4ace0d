//! Sources that complete a TCP handshake with the host are proven, and no others.

use std::{
    fs,
    io::ErrorKind,
    net::{IpAddr, SocketAddr, TcpListener},
    time::Duration,
};

use anyhow::Result;
use limiter_common::standing::{Kind, Standing};
use testbed::{CLIENT_INTERFACE, Connector, Frame, Listener, Load, Namespace, RawSender};

use super::{
    peers::{PORT, connect, pair, wait, wait_for},
    scene::Scene,
};

#[test]
fn peers_that_connect_are_proven_in_either_family() -> Result<()> {
    let pair = pair()?;
    let listener = Listener::new(&pair.server, PORT)?;
    for (to, from) in [("10.0.0.2", "10.0.0.1"), ("2001:db8:2::2", "2001:db8:1::")] {
        let scene = Scene::new(&pair.server, "")?;
        assert!(scene.records_handshakes()?);
        connect(&pair.client, to)?;
        // The listener serves both families, so over IPv4 it writes ::ffff:10.0.0.1.
        assert_eq!(wait(&scene)?, [from]);
        let (record, standing) = scene.of(from)?;
        assert_eq!((record.kind(), standing), (Kind::Proven, Standing::Proven));
    }
    drop(listener);
    let scene = Scene::new(&pair.server, "")?;
    let only_v4 = pair
        .server
        .enter(|| Ok(TcpListener::bind(("10.0.0.2", PORT))?))?;
    connect(&pair.client, "10.0.0.2")?;
    assert_eq!(wait(&scene)?, ["10.0.0.1"]);
    drop(only_v4);
    Ok(())
}

#[test]
fn peers_that_the_host_connects_to_are_proven() -> Result<()> {
    let pair = pair()?;
    let _listener = Listener::new(&pair.client, PORT)?;
    for (to, source) in [("10.0.0.1", "10.0.0.1"), ("2001:db8:1::1", "2001:db8:1::")] {
        let scene = Scene::new(&pair.server, "")?;
        connect(&pair.server, to)?;
        assert_eq!(wait(&scene)?, [source]);
        assert_eq!(scene.of(to)?.1, Standing::Proven);
    }
    Ok(())
}

#[test]
fn peers_that_do_not_answer_or_refuse_are_not_proven() -> Result<()> {
    let pair = pair()?;
    let scene = Scene::new(&pair.server, "")?;
    for to in ["10.0.0.77", "10.0.0.1", "2001:db8:1::1"] {
        assert!(connect(&pair.server, to).is_err(), "{to}");
    }
    assert_eq!(scene.everybody()?, [""; 0]);
    Ok(())
}

#[test]
fn the_host_itself_and_other_namespaces_prove_nobody() -> Result<()> {
    let pair = pair()?;
    let _listener = Listener::new(&pair.server, PORT)?;
    let (of_server, of_neither) = (
        Scene::new(&pair.server, "")?,
        Scene::new(&Namespace::new()?, "")?,
    );
    connect(&pair.server, "10.0.0.2")?;
    for own in ["127.0.0.1", "127.0.0.2", "127.1.2.3"] {
        connect(&pair.server, own)?;
    }
    connect(&pair.server, "2001:db8:2::2")?;
    // When the last one is recorded, the earlier ones would be, too.
    connect(&pair.client, "10.0.0.2")?;
    assert_eq!(wait(&of_server)?, ["10.0.0.1"]);
    assert_eq!(of_neither.everybody()?, [""; 0]);
    Ok(())
}

/// A user of the host connects from one of its addresses to another. Some are its own by a route alone.
#[test]
fn the_host_proves_none_of_its_addresses() -> Result<()> {
    let pair = pair()?;
    let _listener = Listener::new(&pair.server, PORT)?;
    pair.server.ip_batch(
        "link set lo up\n\
         addr add 10.0.0.9/32 dev lo\n\
         addr add 2001:db8:9::9/128 dev lo\n\
         route add local 10.9.0.0/16 dev lo\n\
         route add local 2001:db8:a::/48 dev lo\n",
    )?;
    let scene = Scene::new(&pair.server, "")?;
    for (source, destination) in [
        ("10.0.0.9", "10.0.0.2"),
        ("10.0.0.2", "10.0.0.9"),
        ("10.9.1.1", "10.0.0.2"),
        ("10.0.0.2", "10.9.1.2"),
        ("10.9.1.3", "10.9.1.4"),
        ("2001:db8:9::9", "2001:db8:2::2"),
        ("2001:db8:2::2", "2001:db8:a:1::2"),
    ] {
        let destination = SocketAddr::new(destination.parse()?, PORT);
        let connector = Connector::new(&pair.server, source.parse()?, destination);
        let one = Load::saturating(Duration::from_secs(10)).at_most(1);
        assert_eq!(
            connector.connect(one)?.established,
            1,
            "{source} {destination}"
        );
    }
    // When the last one is recorded, the earlier ones would be, too.
    connect(&pair.client, "10.0.0.2")?;
    assert_eq!(wait(&scene)?, ["10.0.0.1"]);
    Ok(())
}

#[test]
fn handshakes_prove_only_if_the_policy_says_so() -> Result<()> {
    let pair = pair()?;
    let _listener = Listener::new(&pair.server, PORT)?;
    let mut scene = Scene::new(&pair.server, "proven-by: [list]")?;
    assert!(!scene.records_handshakes()?);
    connect(&pair.client, "10.0.0.2")?;
    scene.replace("proven-by: [handshake]")?;
    assert!(scene.records_handshakes()?);
    connect(&pair.client, "2001:db8:2::2")?;
    assert_eq!(wait(&scene)?, ["2001:db8:1::"]);
    scene.replace("proven-by: [list]")?;
    assert!(!scene.records_handshakes()?);
    connect(&pair.client, "10.0.0.2")?;
    assert_eq!(scene.everybody()?, ["2001:db8:1::"]);
    Ok(())
}

/// Forged SYNs, so many that the kernel answers with cookies.
#[test]
fn a_flood_of_syns_proves_nobody() -> Result<()> {
    let pair = pair()?;
    let _listener = Listener::new(&pair.server, PORT)?;
    let scene = Scene::new(&pair.server, "")?;
    let frames = (0..4096_u32).map(|number| {
        let source = IpAddr::from((0x0a07_0000 + number).to_be_bytes());
        Frame::new(source, "10.0.0.2".parse()?).tcp_syn(1000, PORT, number)
    });
    let frames = frames.collect::<Result<Vec<_>>>()?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&frames)?;
    // A real client gets through, by a cookie or not.
    connect(&pair.client, "10.0.0.2")?;
    assert_eq!(wait(&scene)?, ["10.0.0.1"]);
    Ok(())
}

/// The kernel makes a connection of a SYN with data, and the listener accepts it, before it is known
/// whether the source is forged.
#[test]
fn a_fast_open_without_the_end_of_its_handshake_proves_nobody() -> Result<()> {
    let pair = pair()?;
    // Fast opens for all listeners, without a cookie.
    let server = pair.server.clone();
    server.enter(|| Ok(fs::write("/proc/sys/net/ipv4/tcp_fastopen", "1539")?))?;
    let listener = server.enter(|| Ok(TcpListener::bind(("0.0.0.0", PORT))?))?;
    listener.set_nonblocking(true)?;
    let scene = Scene::new(&pair.server, "")?;
    let forged: IpAddr = "10.7.0.7".parse()?;
    let frame = Frame::new(forged, "10.0.0.2".parse()?).tcp_fast_open(1000, PORT, 1, b"x")?;
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    sender.send(
        Load::saturating(Duration::from_secs(5)).at_most(1),
        &[frame],
    )?;
    let accepted = wait_for(|| match listener.accept() {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        accepted => Ok(Some(accepted?)),
    })?;
    assert_eq!(accepted.1.ip(), forged);
    assert_eq!(scene.everybody()?, [""; 0]);
    connect(&pair.client, "10.0.0.2")?;
    assert_eq!(wait(&scene)?, ["10.0.0.1"]);
    Ok(())
}
