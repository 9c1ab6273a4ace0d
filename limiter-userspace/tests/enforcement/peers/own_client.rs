//! A client with its own network stack, connected to a real server.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use limiter_names::testing::{Hello, records};
use socket2::SockRef;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, next_numbers};

use super::{names, server::Server};

/// Longer than any client takes, even after held or retransmitted data.
const WHILE: Duration = Duration::from_secs(4);

/// Beyond all data that the server has sent: the server drops a segment that acknowledges this.
const AHEAD: u32 = 1_000_000;

/// A web server with and without TLS.
pub(super) fn server(pair: &Pair) -> Result<(Server, tempfile::TempDir)> {
    server_with(pair, "")
}

/// The same, with extra nginx directives.
pub(super) fn server_with(pair: &Pair, more: &str) -> Result<(Server, tempfile::TempDir)> {
    let directory = tempfile::tempdir()?;
    names::certificate(directory.path())?;
    let path = directory.path().display();
    let options = format!(
        "listen 10.77.0.1:443 ssl;
    ssl_certificate {path}/certificate;
    ssl_certificate_key {path}/key;
    {more}"
    );
    Ok((
        Server::nginx_with(pair, &[("small", 100)], &options)?,
        directory,
    ))
}

/// How a client names the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    Http,
    /// In two segments.
    Tls,
}

impl By {
    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Tls => 443,
        }
    }

    /// Returns the first bytes; their number is equal for names of equal length.
    pub(super) fn ask(self, name: &str) -> Vec<u8> {
        match self {
            Self::Http => format!("GET /small HTTP/1.1\r\nHost: {name}\r\n\r\n").into_bytes(),
            Self::Tls => {
                let hello = Hello {
                    name: Some(name.as_bytes()),
                    applications: &[],
                    key_share: 1600,
                    is_encrypted: false,
                    ..Hello::NONE
                };
                records(&hello.message(), 1 << 14)
            }
        }
    }
}

/// An open connection, with a way to forge its segments.
pub(super) struct Connection<'p> {
    pair: &'p Pair,
    stream: TcpStream,
    by: By,
    /// The sequence numbers of the first bytes of the client and of the server.
    first: [u32; 2],
}

impl<'p> Connection<'p> {
    pub(super) fn new(pair: &'p Pair, by: By) -> Result<Self> {
        let address = SocketAddr::new("10.77.0.1".parse()?, by.port());
        let stream = pair.client.enter(|| Ok(TcpStream::connect(address)?))?;
        stream.set_read_timeout(Some(WHILE))?;
        // A reset on drop, so that no lost segment is retransmitted.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        Ok(Self {
            first: next_numbers(&stream)?,
            pair,
            stream,
            by,
        })
    }

    /// Sends bytes at a position of the stream, unknown to the client's network stack. With `ahead`, the server drops
    /// them.
    pub(super) fn forge(&self, position: usize, bytes: &[u8], ahead: bool) -> Result<()> {
        self.send(&self.segments(position, bytes, 1000, ahead)?)
    }

    /// Returns frames with bytes at a position of the stream, split into pieces of `length` bytes. `ahead`: as above.
    pub(super) fn segments(
        &self,
        position: usize,
        bytes: &[u8],
        length: usize,
        ahead: bool,
    ) -> Result<Vec<Vec<u8>>> {
        let [client, server]: [IpAddr; 2] = ["10.77.0.2".parse()?, "10.77.0.1".parse()?];
        let [next, expected] = self.first;
        let frame = Frame::new(client, server);
        let port = self.stream.local_addr()?.port();
        let acknowledged = expected.wrapping_add(if ahead { AHEAD } else { 0 });
        (position..)
            .step_by(length)
            .zip(bytes.chunks(length))
            .map(|(position, part)| {
                let sequence = next.wrapping_add(u32::try_from(position)?);
                frame.tcp_data(port, self.by.port(), (sequence, acknowledged), part)
            })
            .collect()
    }

    /// Returns a frame with a byte before the first one, like a keep-alive probe.
    pub(super) fn probe(&self) -> Result<Vec<u8>> {
        let [client, server]: [IpAddr; 2] = ["10.77.0.2".parse()?, "10.77.0.1".parse()?];
        let [next, expected] = self.first;
        let port = self.stream.local_addr()?.port();
        let numbers = (next.wrapping_sub(1), expected);
        Frame::new(client, server).tcp_data(port, self.by.port(), numbers, b"x")
    }

    /// Sends a byte as urgent data.
    pub(super) fn urge(&self, byte: u8) -> Result<()> {
        SockRef::from(&self.stream).send_out_of_band(&[byte])?;
        Ok(())
    }

    /// Sends frames, unknown to the client's network stack.
    pub(super) fn send(&self, frames: &[Vec<u8>]) -> Result<()> {
        RawSender::new(&self.pair.client, CLIENT_INTERFACE)?.send_frames(frames)?;
        Ok(())
    }

    /// Sends bytes through the socket.
    pub(super) fn ask(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Returns whether the server has sent anything by now.
    pub(super) fn has_response(&self) -> Result<bool> {
        self.stream.set_nonblocking(true)?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        match peeked {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            peeked => Ok(peeked? > 0),
        }
    }

    /// Sends bytes through the socket; returns whether the server sends anything.
    pub(super) fn is_answered(&mut self, bytes: &[u8]) -> Result<bool> {
        Ok(!self.request(bytes)?.is_empty())
    }

    /// Sends bytes through the socket; returns the server's response.
    pub(super) fn request(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        self.ask(bytes)?;
        let mut response = vec![0; 4096];
        match self.stream.read(&mut response) {
            Ok(length) => response.truncate(length),
            Err(error) if error.kind() == ErrorKind::WouldBlock => response.clear(),
            Err(error) => bail!(error),
        }
        Ok(response)
    }
}

/// Splits a frame with a TCP segment into two IPv4 fragments. The first one has the header and some data.
pub(super) fn fragments(frame: &[u8]) -> Result<[Vec<u8>; 2]> {
    const IP: usize = 14;
    const TCP: usize = IP + 20;
    const FIRST: usize = 40;
    const MORE: u16 = 1 << 13;
    let (headers, segment) = frame.split_at(TCP);
    let (first, second) = segment.split_at(FIRST);
    let fragment = |part: &[u8], position: u16| -> Result<Vec<u8>> {
        let mut fragment = [headers, part].concat();
        let length = u16::try_from(fragment.len() - IP)?;
        fragment[IP + 2..IP + 4].copy_from_slice(&length.to_be_bytes());
        fragment[IP + 4..IP + 6].copy_from_slice(&[0x12, 0x34]);
        fragment[IP + 6..IP + 8].copy_from_slice(&position.to_be_bytes());
        fragment[IP + 10..IP + 12].fill(0);
        let words = fragment[IP..TCP].chunks(2);
        let sum: u32 = words
            .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !u16::try_from((folded & 0xffff) + (folded >> 16))?;
        fragment[IP + 10..IP + 12].copy_from_slice(&checksum.to_be_bytes());
        Ok(fragment)
    };
    Ok([
        fragment(first, MORE)?,
        fragment(second, u16::try_from(FIRST / 8)?)?,
    ])
}

pub(super) fn reason(limiter: &Limiter, reason: &str) -> Result<u64> {
    let status = limiter.status()?;
    let count = status["reasons"][reason].as_u64();
    count.with_context(|| format!("no count in {status:#}"))
}

/// Returns a policy that counts packets by one name and refuses none.
pub(super) fn policy(until_known: &str) -> String {
    format!(
        "limits:\n  B: {{id: total, cost: packets, burst: 1000, count: 1, period: 1h, \
         match: {{server-name: b.example, destination-port: [80, 443]}}}}\n\
         names: {{tls: {{until-known: {until_known}}}}}\n"
    )
}
