//! SYN cookies: clients connect through a limit that refuses all their SYNs, while forged ones keep
//! the listening socket's queue full.

use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::{IpAddr, Shutdown, SocketAddr, TcpStream},
    num::NonZeroU32,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use socket2::{Domain, Socket, Type};
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Load, Namespace, Pair, RawSender, SERVER_INTERFACE,
};

use crate::{pair, server_for, take_turn};

const PORT: u16 = 7001;

/// The SYNs that wait at the socket before it is full.
const BACKLOG: i32 = 16;

/// Connections of each family for each setting; more with `LIMITER_SYN_COOKIES`.
const CONNECTIONS: usize = 20;

/// What each client sends and gets back; each tenth sends the large one.
const SMALL: usize = 3000;
const LARGE: usize = 10 << 20;

/// Far below the second after which a client would send its SYN again.
const AT_ONCE: Duration = Duration::from_millis(700);

/// As many answers as anybody wants.
const MANY: &str = "{burst: 1000000, count: 1000000, period: 1s}";

/// A limit with one token, and limits of answers.
fn start(pair: &Pair, rate: &str) -> Result<Limiter> {
    let configuration = format!(
        "limits: {{Syns: {{id: total, cost: packets, match: {{protocol: tcp, destination-port: \
         {PORT}, tcp-flags: 'syn,!ack'}}, burst: 1, count: 1, period: 1h, deny: syn-cookie}}}}\n\
         answers: {{per-prefix: {rate}, total: {rate}}}"
    );
    pair.compute_checksums()?;
    Limiter::start(
        Path::new(env!("CARGO_BIN_EXE_limiter")),
        &pair.server,
        &configuration,
        &["-i", SERVER_INTERFACE, "--mode", "generic"],
    )
}

/// Sets one of a namespace's settings of TCP.
fn set(namespace: &Namespace, name: &str, value: &str) -> Result<()> {
    namespace.enter(|| Ok(fs::write(format!("/proc/sys/net/ipv4/{name}"), value)?))
}

/// Sends back what comes, as many connections at a time as come, until the test ends.
fn serve(server: &Namespace) -> Result<()> {
    let address: SocketAddr = format!("[::]:{PORT}").parse()?;
    let socket = server.enter(|| {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, None)?;
        socket.set_only_v6(false)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    })?;
    thread::spawn(move || {
        while let Ok((connection, _)) = socket.accept() {
            let mut connection = TcpStream::from(connection);
            thread::spawn(move || {
                let mut from = connection.try_clone()?;
                std::io::copy(&mut from, &mut connection)?;
                connection.shutdown(Shutdown::Write)
            });
        }
    });
    Ok(())
}

/// Sends `bytes` from an address and reads them back; returns what `ss` shows of the connection, and
/// how long it took to connect.
fn visit(pair: &Pair, from: IpAddr, bytes: usize) -> Result<(String, Duration)> {
    let server = SocketAddr::new(server_for(from)?, PORT);
    let begun = Instant::now();
    let mut connection = pair.client.enter(|| {
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
        socket.connect(&server.into())?;
        Ok(TcpStream::from(socket))
    })?;
    let took = begun.elapsed();
    connection.set_read_timeout(Some(Duration::from_secs(20)))?;
    let port = connection.local_addr()?.port();
    // While it is open, `ss` shows its options.
    connection.write_all(&[7])?;
    connection.read_exact(&mut [0])?;
    let mut ss = pair.client.command("ss");
    let output = ss
        .args(["-tinoH", "sport", "=", &format!(":{port}")])
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout)?;
    ensure!(shown.contains("mss:"), "`ss` shows no connection: {shown}");
    let mut writer = connection.try_clone()?;
    let sender = thread::spawn(move || {
        writer.write_all(&vec![7; bytes])?;
        writer.shutdown(Shutdown::Write)
    });
    let mut received = Vec::new();
    connection
        .read_to_end(&mut received)
        .context("the transfer stalled")?;
    assert_eq!(received.len(), bytes);
    sender.join().expect("the sender does not panic")?;
    Ok((shown, took))
}

fn clients() -> Result<[IpAddr; 2]> {
    Ok(["10.77.0.2".parse()?, "fd77:1:1::1".parse()?])
}

/// SYNs of sources that are not there.
fn forged() -> Result<Vec<Vec<u8>>> {
    let sources = (1u16..200).flat_map(|number| {
        let v4 = format!("10.77.0.{}", 20 + number);
        let v6 = format!("fd77:1:1::f:{number:x}");
        [(v4, "10.77.0.1"), (v6, "fd77::1")]
    });
    sources
        .map(|(source, server)| Frame::new(source.parse()?, server.parse()?).tcp_syn(4000, PORT, 9))
        .collect()
}

fn counted(limiter: &Limiter) -> Result<(u64, u64)> {
    let status = limiter.status()?;
    let cookies = status["limits"]["Syns"]["answers"]["syn-cookie"].as_u64();
    let to_socket = status["reasons"]["listener_has_room"].as_u64();
    Ok((
        cookies.unwrap_or(0),
        to_socket.with_context(|| status.to_string())?,
    ))
}

#[test]
fn clients_connect_while_the_queue_is_full() -> Result<()> {
    let _turn = take_turn();
    let connections = match env::var("LIMITER_SYN_COOKIES") {
        Ok(number) => number.parse()?,
        Err(_) => CONNECTIONS,
    };
    for syn_cookies in ["1", "2"] {
        for timestamps in ["0", "1", "2"] {
            let pair = pair()?;
            set(&pair.server, "tcp_syncookies", syn_cookies)?;
            for end in [&pair.client, &pair.server] {
                set(end, "tcp_timestamps", timestamps)?;
                set(end, "tcp_sack", "1")?;
            }
            let limiter = start(&pair, MANY)?;
            serve(&pair.server)?;
            let flood = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
            let forged = forged()?;
            flood.send_frames(&forged)?;
            let progress = flood.progress();
            let rate = NonZeroU32::new(500).context("a rate")?;
            let load = Load::steady(rate, Duration::from_mins(30));
            let flood = thread::spawn(move || flood.send(load, &forged));
            let mut without_options = 0;
            for number in 0..connections {
                for client in clients()? {
                    let bytes = if number % 10 == 9 { LARGE } else { SMALL };
                    let (shown, took) = visit(&pair, client, bytes)?;
                    assert!(took < AT_ONCE, "{client}: {took:?}");
                    let options = ["wscale", " ts ", "sack"];
                    without_options +=
                        usize::from(options.iter().all(|option| !shown.contains(option)));
                }
            }
            progress.stop();
            flood.join().expect("the flood does not panic")?;
            let (cookies, to_socket) = counted(&limiter)?;
            assert!(cookies >= without_options as u64, "{cookies}");
            if syn_cookies == "1" {
                // Whenever the kernel gives up a forged handshake, the socket has room.
                assert!(without_options > connections, "{without_options}");
                assert!(
                    to_socket > 0 && to_socket < cookies,
                    "{to_socket} of {cookies}"
                );
            } else {
                assert_eq!(without_options, 2 * connections);
                assert_eq!(to_socket, 0);
            }
            assert!(limiter.stop()?.success());
        }
    }
    Ok(())
}

/// While there is no flood, connections keep every option.
#[test]
fn calm_connections_keep_their_options() -> Result<()> {
    let _turn = take_turn();
    let pair = pair()?;
    set(&pair.server, "tcp_syncookies", "1")?;
    for end in [&pair.client, &pair.server] {
        set(end, "tcp_timestamps", "1")?;
        set(end, "tcp_sack", "1")?;
    }
    let limiter = start(&pair, MANY)?;
    serve(&pair.server)?;
    for _ in 0..3 {
        for client in clients()? {
            let (shown, took) = visit(&pair, client, SMALL)?;
            assert!(took < AT_ONCE, "{client}: {took:?}");
            for option in ["wscale", " ts ", "sack"] {
                assert!(shown.contains(option), "{option}: {shown}");
            }
        }
    }
    let (cookies, to_socket) = counted(&limiter)?;
    // The first SYN has the limit's token.
    assert_eq!((cookies, to_socket), (0, 5));
    assert!(limiter.stop()?.success());
    Ok(())
}

/// Real clients get no more connections past the limit than there may be answers, whether or not the
/// socket has room.
#[test]
fn the_limits_of_answers_hold_for_connections() -> Result<()> {
    let _turn = take_turn();
    for syn_cookies in ["1", "2"] {
        let pair = pair()?;
        set(&pair.server, "tcp_syncookies", syn_cookies)?;
        let limiter = start(&pair, "{burst: 3, count: 1, period: 1h}")?;
        serve(&pair.server)?;
        let [client, _] = clients()?;
        for _ in 0..4 {
            visit(&pair, client, SMALL)?;
        }
        let server = SocketAddr::new(server_for(client)?, PORT);
        let fifth = pair
            .client
            .enter(|| Ok(TcpStream::connect_timeout(&server, AT_ONCE)))?;
        assert!(fifth.is_err(), "{fifth:?}");
        let (cookies, to_socket) = counted(&limiter)?;
        assert_eq!(cookies + to_socket, 3);
        assert!(limiter.stop()?.success());
    }
    Ok(())
}
