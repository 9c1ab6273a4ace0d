//! Answers in native mode: over veth they arrive only if the other end has a native program, and
//! the daemon says so.

use std::{
    net::UdpSocket,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Namespace, Pair, SERVER_INTERFACE, Tap};

use crate::{PATIENCE, pair};

/// A DNS query of `example.com` for its address.
const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01";

const ANSWERING: &str = "limits: {All: {id: total, cost: packets, match: {destination-port: 53}, \
                         burst: 1, count: 1, period: 1h, deny: truncate}}\n";

/// Never refuses a packet.
const PASSING: &str = "limits: {All: {id: total, cost: packets, burst: 1000000, count: 1000000, \
                       period: 1s}}\n";

const LOST: &str = "server0: answers are lost: client0, the other end of the veth pair, has no \
                    native XDP program";

fn limiter(namespace: &Namespace, interface: &str, mode: &str, text: &str) -> Result<Limiter> {
    let program = Path::new(env!("CARGO_BIN_EXE_limiter"));
    Limiter::start(program, namespace, text, &["-i", interface, "--mode", mode])
}

/// Returns whether a query of the client is answered. The first one passes, but the port is closed.
fn is_answered(pair: &Pair) -> Result<bool> {
    let socket = pair.client.enter(|| Ok(UdpSocket::bind("10.77.0.2:0")?))?;
    socket.set_read_timeout(Some(Duration::from_millis(300)))?;
    let mut answer = [0; 512];
    for _ in 0..2 {
        // Unconnected, so that the socket gets no error about the closed port.
        socket.send_to(QUERY, "10.77.0.1:53")?;
        if socket.recv(&mut answer).is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waits until the status reports that answers are lost, or no longer does.
fn wait(limiter: &Limiter, lost: bool) -> Result<()> {
    crate::wait(|| Ok(limiter.show(&["status"])?.contains(LOST) == lost))
}

#[test]
fn answers_that_a_veth_pair_loses_are_told() -> Result<()> {
    let pair = pair()?;
    pair.compute_checksums()?;
    let server = limiter(&pair.server, SERVER_INTERFACE, "native", ANSWERING)?;
    wait(&server, true)?;
    assert!(!is_answered(&pair)?);
    // It is logged once.
    let client = limiter(&pair.client, CLIENT_INTERFACE, "native", PASSING)?;
    wait(&server, false)?;
    assert!(is_answered(&pair)?);
    server.wait_for_log("server0: answers leave")?;
    let log = server.log()?;
    assert_eq!(log.matches(LOST).count(), 1, "{log}");
    assert!(client.stop()?.success());
    wait(&server, true)?;
    // A policy without answers causes no warning.
    server.configure(PASSING)?;
    server.show(&["reload"])?;
    wait(&server, false)?;
    assert!(server.stop()?.success());
    Ok(())
}

/// Another driver with native mode: the limiter does not know whether answers leave, and here they
/// do.
#[test]
fn a_tap_interface_sends_back() -> Result<()> {
    const UNKNOWN: &str = "tap0: it is not known whether answers leave";
    let namespace = Namespace::new()?;
    let mut tap = Tap::new(&namespace, "tap0")?;
    // The frames' destination address, because the limiter never answers for another host.
    namespace.ip(&["link", "set", "tap0", "address", "02:00:00:00:00:02"])?;
    let limiter = limiter(&namespace, "tap0", "native", ANSWERING)?;
    crate::wait(|| Ok(limiter.show(&["status"])?.contains(UNKNOWN)))?;
    for pair in [
        ["192.0.2.7", "198.51.100.1"],
        ["2001:db8:1::7", "2001:db8:2::1"],
    ] {
        let frame = Frame::new(pair[0].parse()?, pair[1].parse()?);
        let query = frame.udp(4321, 53, QUERY)?;
        // The first query takes the limit's token.
        tap.send(&query)?;
        tap.send(&query)?;
        // To the sender, with QR and TC set. The interface also sends other frames.
        let is_answer = |frame: &[u8]| {
            frame.len() == query.len()
                && frame.ends_with(&QUERY[12..])
                && frame[..6] == query[6..12]
        };
        let begun = Instant::now();
        loop {
            let frame = tap.receive(Duration::from_millis(500))?;
            if frame.is_some_and(|frame| is_answer(&frame)) {
                break;
            }
            ensure!(begun.elapsed() < PATIENCE, "no answer to {}", pair[0]);
        }
    }
    assert!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn generic_programs_send_back_with_any_driver() -> Result<()> {
    let pair = pair()?;
    pair.compute_checksums()?;
    let server = limiter(&pair.server, SERVER_INTERFACE, "generic", ANSWERING)?;
    assert!(is_answered(&pair)?);
    thread::sleep(Duration::from_millis(500));
    let reported = server.show(&["status"])?;
    ensure!(!reported.contains("answers are lost"), "{reported}");
    assert!(server.stop()?.success());
    Ok(())
}
