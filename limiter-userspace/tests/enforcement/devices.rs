//! Devices with frames that begin with an IP header, and devices with unreadable frames.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
};

use anyhow::Result;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Namespace, RawSender, SERVER_INTERFACE, Tap};

use crate::{PATIENCE, pair, wait};

/// Device types (linux/if_arp.h): tun, WireGuard and others; PPP; raw 802.11 frames.
const NONE: libc::c_ulong = 0xfffe;
const PPP: libc::c_ulong = 512;
const RADIO: libc::c_ulong = 802;

/// The length of the Ethernet header that [`Frame`] writes.
const ETHERNET: usize = 14;

const FIVE_EACH: &str = "limits: {Each: {id: ipAddress, cost: packets, burst: 5, count: 1, period: 1h}, \
                         Range: {id: ipv6RangeCIDR, cost: bytes, burst: 1514, count: 1, period: 1h}}\n";

const ANSWERING: &str = "limits: {Each: {id: ipAddress, cost: packets, burst: 5, count: 1, period: 1h, \
                         deny: truncate, match: {protocol: udp, destination-port: 53}}}\n";

const PROGRAM: &str = env!("CARGO_BIN_EXE_limiter");

fn start(namespace: &Namespace) -> Result<Limiter> {
    Limiter::start(Path::new(PROGRAM), namespace, FIVE_EACH, &["-i", "tun0"])
}

/// The source 8.0.69.0 stands where Ethernet has its ethertype, and reads there as IPv4 (0x0800)
/// and the start of an IPv4 header (0x45). A parser that expects Ethernet would drop such packets
/// as malformed.
#[test]
fn packets_without_an_ethernet_header_are_limited_by_their_sources() -> Result<()> {
    for device_type in [NONE, PPP] {
        let namespace = Namespace::new()?;
        let mut tun = Tap::tun(&namespace, "tun0", device_type)?;
        let limiter = start(&namespace)?;
        for (source, destination, sent) in [
            ("203.0.113.7", "198.51.100.1", 20),
            ("8.0.69.0", "198.51.100.1", 20),
            ("2001:db8:1::7", "2001:db8:2::1", 4),
        ] {
            let frame =
                Frame::new(source.parse()?, destination.parse()?).udp(4321, 7, &[0; 1000])?;
            for _ in 0..sent {
                tun.send(&frame[ETHERNET..])?;
            }
        }
        let limits = &limiter.status()?["limits"];
        let reported = |limit: &str, field: &str| limits[limit][field].as_u64();
        // The IPv6 packets have 1048 bytes each, so the range's burst admits one.
        assert_eq!(reported("Each", "passed_packets"), Some(11), "{limits}");
        assert_eq!(reported("Each", "dropped_packets"), Some(30), "{limits}");
        assert_eq!(reported("Range", "passed_bytes"), Some(1048), "{limits}");
        assert_eq!(reported("Range", "dropped_packets"), Some(3), "{limits}");
        assert!(limiter.stop()?.success());
    }
    Ok(())
}

#[test]
fn a_policy_that_answers_is_refused_where_no_answer_can_be_sent() -> Result<()> {
    let namespace = Namespace::new()?;
    let _tun = Tap::tun(&namespace, "tun0", NONE)?;
    let limiter = start(&namespace)?;
    limiter.configure(ANSWERING)?;
    let refused = limiter.command(&["reload"]).output()?;
    let reported = String::from_utf8(refused.stderr)?;
    assert!(!refused.status.success());
    assert!(
        reported.contains("no answer can be sent on tun0"),
        "{reported}"
    );
    assert!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn a_device_whose_frames_cannot_be_read_is_refused() -> Result<()> {
    let namespace = Namespace::new()?;
    let _tun = Tap::tun(&namespace, "tun0", NONE)?;
    let _radio = Tap::tun(&namespace, "radio0", RADIO)?;
    let limiter = start(&namespace)?;
    limiter.configure(&format!("interfaces: [radio0]\n{FIVE_EACH}"))?;
    for task in ["check", "run"] {
        let mut command = namespace.command(PROGRAM);
        command.args([task, "-c"]).arg(limiter.configuration());
        let refused = command.output()?;
        let reported = String::from_utf8(refused.stderr)?;
        assert!(!refused.status.success(), "{command:?}");
        assert!(
            reported.contains("the frames of radio0"),
            "{command:?}: {reported}"
        );
    }
    assert!(limiter.stop()?.success());
    Ok(())
}

/// A frame larger than the burst never passes. The warning does not depend on which of the two is set first.
#[test]
fn an_mtu_above_a_burst_is_told() -> Result<()> {
    const BYTES: &str =
        "limits: {Bytes: {id: ipAddress, cost: bytes, burst: 2000, count: 2000, period: 1s}}\n";
    let pair = pair()?;
    let limiter = crate::start(&pair, BYTES)?;
    let reported = || {
        Ok(limiter
            .show(&["status"])?
            .contains("limit Bytes has a burst of 2000 bytes"))
    };
    let is_healthy = || {
        anyhow::Ok(
            limiter
                .command(&["status", "--check"])
                .output()?
                .status
                .success(),
        )
    };
    assert!(!reported()? && is_healthy()?);
    let set_mtu = |mtu| {
        pair.server
            .ip(&["link", "set", SERVER_INTERFACE, "mtu", mtu])
    };
    set_mtu("9000")?;
    wait(reported)?;
    assert!(!is_healthy()?);
    limiter.wait_for_log("server0 carries frames of 9014 bytes")?;
    set_mtu("1500")?;
    wait(|| Ok(!reported()?))?;
    assert!(is_healthy()?);
    assert!(limiter.stop()?.success());
    Ok(())
}

/// Neighbour discovery works although the limit has no token left for any other ICMPv6 packet.
#[test]
fn a_spent_limit_on_icmpv6_does_not_end_ipv6() -> Result<()> {
    const ICMPV6: &str = "limits: {All: {id: total, cost: packets, match: {protocol: icmpv6}, burst: 1, count: 1, period: 1h}}\n";
    let pair = pair()?;
    let address: SocketAddr = "[fd77::1]:7000".parse()?;
    let listener = pair.server.enter(|| Ok(TcpListener::bind(address)?))?;
    let limiter = crate::start(&pair, ICMPV6)?;
    let ping = Frame::new("fd77:1:1::1".parse()?, "fd77::1".parse()?).echo(b"hello")?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![ping; 3000])?;
    let has_dropped = || {
        let limits = &limiter.status()?["limits"];
        Ok(limits["All"]["dropped_packets"].as_u64() >= Some(2999))
    };
    wait(has_dropped)?;
    for namespace in [&pair.client, &pair.server] {
        namespace.ip(&["-6", "neigh", "flush", "all"])?;
    }
    let _client = pair
        .client
        .enter(|| Ok(TcpStream::connect_timeout(&address, PATIENCE)?))?;
    listener.accept()?;
    assert!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn an_interface_goes_by_its_other_names() -> Result<()> {
    const OTHER: &str = "enp3s0f0np0";
    let pair = pair()?;
    let named = [
        "link",
        "property",
        "add",
        "dev",
        SERVER_INTERFACE,
        "altname",
        OTHER,
    ];
    pair.server.ip(&named)?;
    let configuration = format!("interfaces: {OTHER}\n{FIVE_EACH}");
    let limiter = Limiter::start(Path::new(PROGRAM), &pair.server, &configuration, &[])?;
    let interfaces = &limiter.status()?["interfaces"];
    assert_eq!(interfaces[0]["name"], OTHER, "{interfaces}");
    assert_eq!(interfaces[0]["attached"], true, "{interfaces}");
    limiter.configure(&format!(
        "interfaces: [{OTHER}, {SERVER_INTERFACE}]\n{FIVE_EACH}"
    ))?;
    let refused = limiter.command(&["reload"]).output()?;
    let reported = String::from_utf8(refused.stderr)?;
    assert!(
        !refused.status.success() && reported.contains("one interface"),
        "{reported}"
    );
    limiter.configure(&configuration)?;
    limiter.show(&["reload"])?;
    // A change of the interface does not make the daemon lose its configured name.
    pair.server
        .ip(&["link", "set", SERVER_INTERFACE, "mtu", "1400"])?;
    assert!(
        limiter
            .command(&["status", "--check"])
            .output()?
            .status
            .success()
    );
    assert!(limiter.stop()?.success());
    Ok(())
}
