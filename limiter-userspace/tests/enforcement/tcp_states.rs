//! Limits on segments of no connection: a flood of them is held, and no connection notices.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender};

use crate::{PACE, PATIENCE, pair, server_for, start, syn_cookies::set};

/// The addresses of the client, and of an unused source.
const CLIENTS: [[&str; 2]; 2] = [["10.77.0.2", "10.77.0.99"], ["fd77:1:1::1", "fd77:1:1::99"]];

const PORT: u16 = 7011;

/// A port without a listener.
const CLOSED: u16 = 7012;

/// The limit's burst.
const BURST: u64 = 5;

/// How many stray segments come from the ports of one source.
const STRAY: u16 = 500;

const POLICY: &str = "limits: {Stray: {id: total, cost: packets, match: {state: none}, burst: 5, \
                      count: 1, period: 1h}}\n";

struct Scene {
    pair: Pair,
    limiter: Limiter,
    listener: TcpListener,
    client: IpAddr,
    nobody: IpAddr,
}

impl Scene {
    fn new([client, nobody]: [&str; 2]) -> Result<Self> {
        let [client, nobody]: [IpAddr; 2] = [client.parse()?, nobody.parse()?];
        let pair = pair()?;
        // No stack reads a SYN cookie in a segment with a wrong checksum.
        pair.compute_checksums()?;
        let server = SocketAddr::new(server_for(client)?, PORT);
        let listener = pair.server.enter(|| Ok(TcpListener::bind(server)?))?;
        listener.set_nonblocking(true)?;
        let limiter = start(&pair, POLICY)?;
        Ok(Self {
            pair,
            limiter,
            listener,
            client,
            nobody,
        })
    }

    /// Opens a connection; returns both ends.
    fn connect(&self) -> Result<[TcpStream; 2]> {
        let server = self.listener.local_addr()?;
        let client = self
            .pair
            .client
            .enter(|| Ok(TcpStream::connect_timeout(&server, PATIENCE)?))?;
        let accepted = self.accept()?;
        for end in [&client, &accepted] {
            end.set_read_timeout(Some(PATIENCE))?;
        }
        Ok([client, accepted])
    }

    /// Accepts a connection. Its handshake may have been refused at the last ACK.
    fn accept(&self) -> Result<TcpStream> {
        let begun = Instant::now();
        loop {
            match self.listener.accept() {
                Ok((accepted, _)) => {
                    accepted.set_nonblocking(false)?;
                    return Ok(accepted);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            ensure!(begun.elapsed() < PATIENCE, "no handshake ended");
            thread::sleep(PACE);
        }
    }

    /// Sends ACKs and resets of no connection, from the client's address and an unused one, to open and
    /// closed ports; returns how many.
    fn flood(&self) -> Result<u64> {
        const RST: u8 = 0x04;
        let sender = RawSender::new(&self.pair.client, CLIENT_INTERFACE)?;
        let mut frames = Vec::new();
        for source in [self.client, self.nobody] {
            let frame = Frame::new(source, server_for(source)?);
            let flags = if source.is_ipv4() {
                14 + 20 + 13
            } else {
                14 + 40 + 13
            };
            for port in 1000..1000 + STRAY {
                let to = if port.is_multiple_of(2) { PORT } else { CLOSED };
                let mut segment = frame.tcp_ack(port, to, 1, 1)?;
                if port % 4 < 2 {
                    // No network stack sees its checksum, unless the limit admits it.
                    segment[flags] = RST;
                }
                frames.push(segment);
            }
        }
        sender.send_frames(&frames)?;
        Ok(frames.len() as u64)
    }

    fn reasons(&self, reason: &str) -> Result<u64> {
        let status = self.limiter.status()?;
        Ok(status["reasons"][reason].as_u64().unwrap_or_default())
    }

    fn wait(&self, reason: &str, wanted: u64) -> Result<()> {
        let is_so = crate::wait(|| Ok(self.reasons(reason)? >= wanted));
        is_so.with_context(|| format!("{wanted} are not {reason}"))
    }
}

/// Says something both ways, in more segments than the limit admits.
fn talk([client, server]: &mut [TcpStream; 2]) -> Result<()> {
    for byte in 0..20 {
        client.write_all(&[byte])?;
        let mut heard = [0];
        server.read_exact(&mut heard)?;
        assert_eq!(heard, [byte]);
        server.write_all(&heard)?;
        client.read_exact(&mut heard)?;
        assert_eq!(heard, [byte]);
    }
    Ok(())
}

#[test]
fn a_flood_of_stray_segments_is_held_and_connections_go_on() -> Result<()> {
    for addresses in CLIENTS {
        let scene = Scene::new(addresses)?;
        let mut open = scene.connect().context("before the flood")?;
        talk(&mut open)?;
        let sent = scene.flood()?;
        scene.wait("over_limit", sent - BURST)?;
        assert_eq!(scene.reasons("within_limits")?, BURST);
        talk(&mut open)?;
        talk(&mut scene.connect().context("after it")?)?;
        drop(open);
        // Also by SYN cookies: an ACK that ends a handshake finds only the socket that listens.
        set(&scene.pair.server, "tcp_syncookies", "2")?;
        talk(&mut scene.connect().context("by a SYN cookie")?)?;
        let sent = sent + scene.flood()?;
        scene.wait("over_limit", sent - BURST)?;
        talk(&mut scene.connect().context("after another flood")?)?;
        assert_eq!(scene.reasons("within_limits")?, BURST);
        assert!(scene.limiter.stop()?.success());
    }
    Ok(())
}
