//! Honest clients beside a client that hoards connections or forges another's address.

use std::{
    collections::VecDeque,
    io::ErrorKind,
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::errno::Errno;
use socket2::{Domain, Socket, Type};
use testbed::{CLIENT_INTERFACE, Frame, Pair, RawSender};

use super::{CLIENT, LIMIT, PORT, Server, assert_counted, connect, policy, start};
use crate::pair;

const HONEST: &str = "10.77.0.3";

/// How often the hoarder connects.
const ATTEMPTS: usize = 10_000;

/// How many attempts it has under way at a time.
const AT_A_TIME: usize = 200;

/// The least number of visits by the honest client meanwhile.
const VISITS: usize = 100;

/// Connects again and again, and keeps every connection it gets.
fn hoard(pair: &Pair) -> Result<()> {
    let server = SocketAddr::new("10.77.0.1".parse()?, PORT);
    let client = SocketAddr::new(CLIENT.parse()?, 0);
    pair.client.enter(|| {
        let mut attempts = VecDeque::new();
        let mut kept = Vec::new();
        for _ in 0..ATTEMPTS {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            socket.bind(&client.into())?;
            match socket.connect(&server.into()) {
                Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => {
                    return Err(error).context("the hoarder cannot try");
                }
                _ => attempts.push_back(socket),
            }
            if attempts.len() > AT_A_TIME {
                let oldest = attempts.pop_front().context("there are some")?;
                if oldest.peer_addr().is_ok() {
                    kept.push(oldest);
                }
                thread::sleep(Duration::from_micros(50));
            }
        }
        ensure!(kept.len() <= LIMIT, "the hoarder has {}", kept.len());
        Ok(())
    })
}

fn is_open(stream: &TcpStream) -> bool {
    let peeked = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut [0]));
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Connects from another client again and again, each time with one SYN.
fn visit(pair: &Pair, is_enough: impl Fn() -> bool) -> Result<()> {
    let mut longest = Duration::ZERO;
    let mut visits = 0;
    while visits < VISITS || !is_enough() {
        let begun = Instant::now();
        let open = connect(pair, HONEST).with_context(|| format!("visit {visits}"))?;
        longest = longest.max(begun.elapsed());
        // A reset, so that its slot is free at once.
        Socket::from(open).set_linger(Some(Duration::ZERO))?;
        visits += 1;
    }
    println!("{visits} visits, the longest took {longest:?} to connect");
    Ok(())
}

#[test]
fn a_hoarder_keeps_nobody_else_out() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("ipAddress", ""))?;
    // On a busy machine a visit may last over two polls. If it ends during a third, its slot stays taken for two more.
    limiter.take_precedence()?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // The server keeps connections open, and goes on accepting after a pause.
        scope.spawn(|| {
            let mut held = Vec::new();
            while !is_over.load(SeqCst) {
                held.extend(server.accept());
                held.retain(is_open);
            }
        });
        let hoarding = scope.spawn(|| hoard(&pair));
        let visited = visit(&pair, || hoarding.is_finished());
        is_over.store(true, SeqCst);
        visited?;
        hoarding.join().expect("the hoarder does not panic")
    })
}

/// nftables' `ct count` counts incomplete handshakes, so a forger can lock out the client at the forged address. The
/// limiter counts only connections.
#[test]
fn forged_syns_lock_the_owner_out_of_nftables_count_alone() -> Result<()> {
    for has_limiter in [false, true] {
        let pair = pair()?;
        let _server = Server::new(&pair.server)?;
        let limiter = if has_limiter {
            Some(start(&pair, &policy("ipAddress", ""))?)
        } else {
            let rules = format!(
                "table ip counts {{ set open {{ type ipv4_addr; flags dynamic; }}; chain input {{ \
                 type filter hook input priority 0; tcp dport {PORT} ct state new add @open {{ ip \
                 saddr ct count over {LIMIT} }} drop; }}; }}"
            );
            let output = pair.server.command("nft").arg(rules).output()?;
            ensure!(output.status.success(), "{output:?}");
            None
        };
        // Otherwise the client's own stack would reset the forged handshakes. The rule simulates a client that is away.
        let drops = "table ip away { chain input { type filter hook input priority 0; tcp flags & \
                     (syn | ack) == (syn | ack) drop; }; }";
        let output = pair.client.command("nft").arg(drops).output()?;
        ensure!(output.status.success(), "{output:?}");
        let frame = Frame::new(HONEST.parse()?, "10.77.0.1".parse()?);
        let forged: Vec<_> = (1000..1050)
            .map(|port| frame.tcp_syn(port, PORT, 1))
            .collect::<Result<_>>()?;
        RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&forged)?;
        let table = ["delete", "table", "ip", "away"];
        let output = pair.client.command("nft").args(table).output()?;
        ensure!(output.status.success(), "{output:?}");

        let connected = connect(&pair, HONEST);
        ensure!(
            connected.is_ok() == has_limiter,
            "with limiter: {has_limiter}, {connected:?}"
        );
        if let Some(limiter) = limiter {
            assert_counted(&limiter, 1)?;
        }
    }
    Ok(())
}
