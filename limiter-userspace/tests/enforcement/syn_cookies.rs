//! SYN cookies: clients connect through a limit that refuses all their SYNs, while forged SYNs keep the listening
//! socket's queue full.

mod options;

use std::{
    collections::BTreeMap,
    env, fs,
    io::{Read as _, Write as _},
    net::{IpAddr, Shutdown, SocketAddr, TcpStream},
    num::NonZeroU32,
    os::fd::AsRawFd as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use socket2::{Domain, Socket, Type};
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Listener, Load, Namespace, Pair, Progress, RawSender,
    Recorder, SERVER_INTERFACE, SendReport,
};

use crate::{PATIENCE, pair, server_for, wait};

const PORT: u16 = 7001;

/// The flag in a TCP header.
const ACK: u8 = 0x10;

/// How many SYNs fill the socket's queue.
const BACKLOG: i32 = 16;

/// Connections for each family and setting.
const CONNECTIONS: usize = 10;

/// The number of bytes that a client sends and gets back; some clients use the large one.
const SMALL: usize = 3000;
const LARGE: usize = 10 << 20;

/// The server sends this much more than it gets. Otherwise a connection's last ACK differs from its first one by the
/// same amount in both numbers, and the network stack takes a repeated one for a cookie.
const MORE: usize = 1000;

/// In larger runs, `ss` is called for one connection in this many.
const SHOWN: usize = 50;

/// Well below the second after which a client repeats its SYN.
const AT_ONCE: Duration = Duration::from_millis(700);

/// A limit of answers that is never reached.
const MANY: &str = "{burst: 1000000, count: 1000000, period: 1s}";

/// Starts a limiter with one token, and these limits of answers.
fn start(pair: &Pair, rate: &str) -> Result<Limiter> {
    start_with(pair, rate, &[])
}

fn start_with(pair: &Pair, rate: &str, more: &[&str]) -> Result<Limiter> {
    start_rates_with(pair, &format!("per-prefix: {rate}, total: {rate}"), more)
}

fn start_rates(pair: &Pair, rates: &str) -> Result<Limiter> {
    start_rates_with(pair, rates, &[])
}

fn start_rates_with(pair: &Pair, rates: &str, more: &[&str]) -> Result<Limiter> {
    let configuration = format!(
        "limits: {{Syns: {{id: total, cost: packets, match: {{protocol: tcp, destination-port: \
         {PORT}, tcp-flags: 'syn,!ack'}}, burst: 1, count: 1, period: 1h, deny: syn-cookie}}}}\n\
         answers: {{{rates}}}"
    );
    pair.compute_checksums()?;
    Limiter::start(
        Path::new(env!("CARGO_BIN_EXE_limiter")),
        &pair.server,
        &configuration,
        &[&["-i", SERVER_INTERFACE, "--mode", "generic"][..], more].concat(),
    )
}

/// Sets one of a namespace's settings of TCP.
pub(crate) fn set(namespace: &Namespace, name: &str, value: &str) -> Result<()> {
    namespace.enter(|| Ok(fs::write(format!("/proc/sys/net/ipv4/{name}"), value)?))
}

/// Returns the number of connections: from the environment, or else `usual`.
pub(crate) fn number_of(usual: usize) -> Result<usize> {
    match env::var("LIMITER_SYN_COOKIES") {
        Ok(number) => Ok(number.parse()?),
        Err(_) => Ok(usual),
    }
}

/// Options that the application sets on its listening socket.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// `SO_RCVBUF`.
    receive_buffer: Option<usize>,
    /// `TCP_WINDOW_CLAMP`.
    window_clamp: Option<i32>,
    /// How many connections may wait for accept, if not [`BACKLOG`].
    backlog: Option<i32>,
}

/// Runs an echo server for any number of connections until the test ends; returns the count of connections.
fn serve(server: &Namespace, asked: Asked) -> Result<Arc<AtomicUsize>> {
    let address: SocketAddr = format!("[::]:{PORT}").parse()?;
    let socket = server.enter(|| {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, None)?;
        socket.set_only_v6(false)?;
        socket.set_reuse_address(true)?;
        if let Some(bytes) = asked.receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = asked.window_clamp {
            clamp_window(&socket, bytes)?;
        }
        socket.bind(&address.into())?;
        socket.listen(asked.backlog.unwrap_or(BACKLOG))?;
        Ok(socket)
    })?;
    let came = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&came);
    thread::spawn(move || {
        loop {
            let (connection, _) = socket.accept().expect("connections come");
            counter.fetch_add(1, Ordering::Relaxed);
            let mut connection = TcpStream::from(connection);
            thread::spawn(move || {
                let mut from = connection.try_clone()?;
                std::io::copy(&mut from, &mut connection)?;
                connection.write_all(&[7; MORE])?;
                connection.shutdown(Shutdown::Write)
            });
        }
    });
    Ok(came)
}

fn clamp_window(socket: &Socket, bytes: i32) -> Result<()> {
    // SAFETY: the descriptor is open, and the pointer refers to an integer of the given length.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw const bytes).cast(),
            4,
        )
    };
    ensure!(result == 0, std::io::Error::last_os_error());
    Ok(())
}

/// A connection's options, from `ss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    timestamps: bool,
    sack: bool,
    /// The window scales received by the client and by the server; `None` if windows are not scaled.
    scales: Option<[u8; 2]>,
}

impl Options {
    const NONE: Self = Self {
        timestamps: false,
        sack: false,
        scales: None,
    };

    /// Reads the options from `ss` at one end. `ports`: the filter for the connection.
    fn at(namespace: &Namespace, ports: &str) -> Result<Self> {
        let mut ss = namespace.command("ss");
        let mut arguments = vec!["-tinoH"];
        arguments.extend(ports.split(' '));
        let output = ss.args(arguments).output()?;
        ensure!(output.status.success(), "{output:?}");
        let shown = String::from_utf8(output.stdout)?;
        ensure!(shown.contains("mss:"), "`ss` shows no connection: {shown}");
        let words: Vec<&str> = shown.split_whitespace().collect();
        let scales = words.iter().find_map(|word| word.strip_prefix("wscale:"));
        let scales = scales.map(|text| {
            let (theirs, own) = text.split_once(',').context("two scales")?;
            anyhow::Ok([theirs.parse()?, own.parse()?])
        });
        Ok(Self {
            timestamps: words.contains(&"ts"),
            sack: words.contains(&"sack"),
            scales: scales.transpose()?,
        })
    }

    /// Fails unless both ends have the same options; returns them.
    fn of(pair: &Pair, client_port: u16) -> Result<Self> {
        let at_client = Self::at(&pair.client, &format!("sport = :{client_port}"))?;
        let at_server = Self::at(&pair.server, &format!("dport = :{client_port}"))?;
        let turned = at_server.scales.map(|[theirs, own]| [own, theirs]);
        let scales = turned;
        ensure!(
            at_client
                == Self {
                    scales,
                    ..at_server
                },
            "the client has {at_client:?}, the server {at_server:?}"
        );
        Ok(at_client)
    }
}

/// Sends `bytes` from an address and reads them back; returns the options from `ss`, and how long it took to connect.
fn visit(pair: &Pair, from: IpAddr, bytes: usize) -> Result<(Options, Duration)> {
    let (options, took) = connect(pair, from, bytes, true)?;
    Ok((options.context("`ss` was not asked")?, took))
}

fn connect(
    pair: &Pair,
    from: IpAddr,
    bytes: usize,
    is_shown: bool,
) -> Result<(Option<Options>, Duration)> {
    let server = SocketAddr::new(server_for(from)?, PORT);
    let begun = Instant::now();
    let mut connection = pair.client.enter(|| {
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
        socket.connect(&server.into())?;
        Ok(TcpStream::from(socket))
    })?;
    let took = begun.elapsed();
    connection.set_read_timeout(Some(PATIENCE))?;
    let port = connection.local_addr()?.port();
    // `ss` shows the options only while the connection is open.
    connection.write_all(&[7])?;
    connection.read_exact(&mut [0])?;
    let options = is_shown.then(|| Options::of(pair, port)).transpose()?;
    let mut writer = connection.try_clone()?;
    let sender = thread::spawn(move || {
        writer.write_all(&vec![7; bytes])?;
        writer.shutdown(Shutdown::Write)
    });
    let mut received = Vec::new();
    connection
        .read_to_end(&mut received)
        .context("the transfer stalled")?;
    assert_eq!(received.len(), bytes + MORE);
    sender.join().expect("the sender does not panic")?;
    Ok((options, took))
}

fn clients() -> Result<[IpAddr; 2]> {
    Ok(["10.77.0.2".parse()?, "fd77:1:1::1".parse()?])
}

/// SYNs of unused sources.
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

/// Forged SYNs that keep the queue full until this value is dropped.
struct Flood {
    progress: Progress,
    thread: Option<thread::JoinHandle<Result<SendReport>>>,
}

impl Flood {
    fn start(pair: &Pair) -> Result<Self> {
        let flood = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
        let forged = forged()?;
        flood.send_frames(&forged)?;
        let progress = flood.progress();
        let rate = NonZeroU32::new(500).context("a rate")?;
        let load = Load::steady(rate, Duration::from_mins(30));
        let thread = Some(thread::spawn(move || flood.send(load, &forged)));
        Ok(Self { progress, thread })
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.progress.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || matches!(ended, Ok(Ok(_))));
        }
    }
}

#[test]
fn clients_connect_while_the_queue_is_full() -> Result<()> {
    let connections = number_of(CONNECTIONS)?;
    // At most a hundred connections make large transfers.
    let large = (connections / 100).max(10);
    for syn_cookies in ["1", "2"] {
        for timestamps in ["0", "1", "2"] {
            let pair = pair()?;
            set(&pair.server, "tcp_syncookies", syn_cookies)?;
            for end in [&pair.client, &pair.server] {
                set(end, "tcp_timestamps", timestamps)?;
                set(end, "tcp_sack", "1")?;
            }
            let limiter = start(&pair, MANY)?;
            serve(&pair.server, Asked::default())?;
            wait_for_scale();
            let flood = Flood::start(&pair)?;
            let mut shown: BTreeMap<String, usize> = BTreeMap::new();
            let (mut asked, mut without_options) = (0, 0);
            for number in 0..connections {
                for client in clients()? {
                    let bytes = if number % large == large - 1 {
                        LARGE
                    } else {
                        SMALL
                    };
                    let is_shown = connections <= SHOWN || number % SHOWN == 0;
                    let (options, took) = connect(&pair, client, bytes, is_shown)
                        .with_context(|| format!("{client}, connection {number}"))?;
                    assert!(took < AT_ONCE, "{client}, connection {number}: {took:?}");
                    if let Some(options) = options {
                        asked += 1;
                        without_options += usize::from(options == Options::NONE);
                        *shown.entry(format!("{options:?}")).or_default() += 1;
                    }
                }
            }
            drop(flood);
            let (cookies, to_socket) = counted(&limiter)?;
            println!(
                "tcp_syncookies {syn_cookies}, tcp_timestamps {timestamps}: {cookies} cookies, \
                 {to_socket} to the socket; {shown:?}"
            );
            assert!(cookies >= without_options as u64, "{cookies}");
            if syn_cookies == "1" {
                // Whenever the kernel gives up a forged handshake, the socket has room.
                assert!(
                    to_socket > 0 && to_socket < cookies,
                    "{to_socket} of {cookies}"
                );
            } else {
                assert_eq!(to_socket, 0);
            }
            match (timestamps, syn_cookies) {
                // All options are kept, with a cookie or without.
                ("2", _) => {
                    let all = shown.keys().all(|options| {
                        options.contains("timestamps: true, sack: true, scales: Some")
                    });
                    assert!(all && shown.len() == 1, "{shown:?}");
                }
                (_, "1") => assert!(without_options * 2 > asked, "{without_options}"),
                _ => assert_eq!(without_options, asked),
            }
            assert!(limiter.stop()?.success());
        }
    }
    Ok(())
}

/// The daemon gives programs the largest receive buffer just after it reports that it is ready.
fn wait_for_scale() {
    thread::sleep(Duration::from_millis(300));
}

/// A host that makes a cookie for each SYN.
fn cookies_only(asked: Asked) -> Result<(Pair, Limiter)> {
    let pair = pair()?;
    set(&pair.server, "tcp_syncookies", "2")?;
    for end in [&pair.client, &pair.server] {
        set(end, "tcp_timestamps", "2")?;
        set(end, "tcp_sack", "1")?;
    }
    let limiter = start(&pair, MANY)?;
    serve(&pair.server, asked)?;
    wait_for_scale();
    for client in clients()? {
        // The first visit takes the limit's token.
        visit(&pair, client, SMALL)?;
    }
    Ok((pair, limiter))
}

/// A client that has lost a connection which the server still has connects again from the same port: the network stack
/// challenges it, and learns that the old connection is gone.
#[test]
fn a_forgotten_connection_keeps_nobody_out() -> Result<()> {
    let (pair, limiter) = cookies_only(Asked::default())?;
    for (client, family) in clients()?.into_iter().zip(["ip", "ip6"]) {
        let server = SocketAddr::new(server_for(client)?, PORT);
        let connect = || {
            pair.client.enter(|| {
                let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
                socket.set_linger(Some(Duration::ZERO))?;
                socket.bind(&SocketAddr::new(client, 4321).into())?;
                socket.connect_timeout(&server.into(), Duration::from_secs(10))?;
                Ok(TcpStream::from(socket))
            })
        };
        let nft = |rules: &str| {
            let output = pair.client.command("nft").arg(rules).output()?;
            ensure!(output.status.success(), "{output:?}");
            Ok(())
        };
        let mut forgotten = connect()?;
        forgotten.write_all(&[7])?;
        forgotten.read_exact(&mut [0])?;
        nft(&format!(
            "table {family} forgets {{ chain output {{ type filter hook output priority 0; tcp \
             flags & rst == rst drop; }}; }}"
        ))?;
        drop(forgotten);
        nft(&format!("delete table {family} forgets"))?;
        let mut connection = connect().with_context(|| format!("{client} cannot connect again"))?;
        connection.write_all(&[7])?;
        connection.read_exact(&mut [0])?;
    }
    assert!(limiter.stop()?.success());
    Ok(())
}

/// Many real hosts that open connections as fast as they can get no more of them past the limit than the limits of
/// answers allow, even if the socket has room for all.
#[test]
fn real_hosts_do_not_pass_the_limits_of_answers() -> Result<()> {
    const CLIENTS: usize = 24;
    const ATTACK: Duration = Duration::from_secs(3);
    for syn_cookies in ["1", "2"] {
        let pair = pair()?;
        set(&pair.server, "tcp_syncookies", syn_cookies)?;
        for number in 0..CLIENTS {
            let address = format!("10.77.0.{}/24", 100 + number);
            pair.client
                .ip(&["address", "add", &address, "dev", CLIENT_INTERFACE])?;
        }
        // One of the clients' three prefixes has most of the hosts.
        let rates = "per-prefix: {burst: 10, count: 10, period: 1s}, \
                     total: {burst: 20, count: 20, period: 1s}";
        let limiter = start_rates(&pair, rates)?;
        // With a full accept queue, the kernel makes no cookies either.
        let asked = Asked {
            backlog: (syn_cookies == "2").then_some(1024),
            ..Asked::default()
        };
        let came = serve(&pair.server, asked)?;
        let begun = Instant::now();
        let attack = |from: IpAddr| -> Result<()> {
            let server = SocketAddr::new(server_for(from)?, PORT);
            // No port twice: the network stack itself answers a SYN for a former connection.
            for port in 10_000.. {
                if begun.elapsed() >= ATTACK {
                    break;
                }
                pair.client.enter(|| {
                    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
                    socket.bind(&SocketAddr::new(from, port).into())?;
                    // Give up and try another port long before the SYN is repeated.
                    let _ = socket.connect_timeout(&server.into(), Duration::from_millis(20));
                    Ok(())
                })?;
            }
            Ok(())
        };
        let hosts = (0..CLIENTS).map(|number| format!("10.77.0.{}", 100 + number));
        let others = ["10.78.0.2", "fd77:1:1::1", "fd77:1:2::1"].map(str::to_owned);
        let hosts: Vec<IpAddr> = hosts
            .chain(others)
            .map(|text| text.parse())
            .collect::<Result<_, _>>()?;
        thread::scope(|scope| {
            let attack = &attack;
            let attacks: Vec<_> = hosts
                .iter()
                .map(|host| scope.spawn(move || attack(*host)))
                .collect();
            attacks
                .into_iter()
                .try_for_each(|attack| attack.join().expect("no panic"))
        })?;
        let took = begun.elapsed();
        thread::sleep(Duration::from_millis(300));
        let (cookies, to_socket) = counted(&limiter)?;
        // The limit's own token, and the tokens of the interface.
        let most = 1 + 20 + took.as_millis() * 20 / 1000;
        let came = came.load(Ordering::Relaxed);
        println!(
            "tcp_syncookies {syn_cookies}: {came} connections in {took:?}, at most {most}; \
             {cookies} cookies, {to_socket} to the socket"
        );
        assert!(came as u128 <= most, "{came} connections, at most {most}");
        // The clients use most of the allowed connections.
        assert!(
            cookies + to_socket >= 60 && came >= 50,
            "{came} of {cookies} + {to_socket}"
        );
        assert_eq!(to_socket == 0, syn_cookies == "2");
        assert!(limiter.stop()?.success());
    }
    Ok(())
}

/// A cookie can be replayed, and the network stack makes a connection of it each time, if the former one is closed. IP
/// options hide it from the network stack's helper functions for programs.
#[test]
fn a_cookie_that_comes_again_is_charged_each_time() -> Result<()> {
    const TIMES: u64 = 60;
    const ALLOWED: u64 = 20;
    const FROM: u16 = 5001;
    for with_options in [false, true] {
        let pair = pair()?;
        set(&pair.server, "tcp_syncookies", "2")?;
        pair.compute_checksums()?;
        let listener = Listener::new(&pair.server, PORT)?;
        let rates = format!("{{burst: {ALLOWED}, count: 1, period: 1h}}");
        let configuration = format!(
            "limits: {{New: {{id: ipAddress, cost: new-connections, match: {{destination-port: {PORT}}}, \
             burst: 5, count: 1, period: 1h, deny: syn-cookie}}}}\n\
             answers: {{per-prefix: {rates}, total: {rates}}}"
        );
        let limiter = Limiter::start(
            Path::new(env!("CARGO_BIN_EXE_limiter")),
            &pair.server,
            &configuration,
            &["-i", SERVER_INTERFACE, "--mode", "generic"],
        )?;
        // The cookie comes from the network stack itself.
        let recorder = Recorder::new(&pair.client, CLIENT_INTERFACE)?;
        let [from, to]: [IpAddr; 2] = ["10.77.0.2".parse()?, "10.77.0.1".parse()?];
        pair.client.enter(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.bind(&SocketAddr::new(from, FROM).into())?;
            Ok(socket.connect(&SocketAddr::new(to, PORT).into())?)
        })?;
        let ack = recorder.finish()?.into_iter().find(|packet| {
            // Skips Ethernet and IPv4: the client's port, and the flags.
            let data = &packet.data;
            data.get(34..36) == Some(&FROM.to_be_bytes()) && data.get(47) == Some(&ACK)
        });
        let mut ack = ack.context("no ACK was recorded")?.data;
        if with_options {
            add_ip_options(&mut ack);
        }
        let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
        let connections = || listener.so_far().packets();
        wait(|| Ok(connections() == 1))?;
        let stray = || -> Result<u64> {
            Ok(limiter.status()?["reasons"]["over_limit"]
                .as_u64()
                .unwrap_or(0))
        };
        for _ in 0..TIMES {
            let before = (connections(), stray()?);
            sender.send_frames(std::slice::from_ref(&ack))?;
            // Each replay makes a connection or is dropped.
            wait(|| Ok((connections(), stray()?) != before))?;
        }
        let more = connections() - 1;
        // The client's own ACK was the first use of the cookie.
        assert_eq!(more, ALLOWED - 1, "with options: {with_options}");
        assert!(limiter.stop()?.success());
    }
    Ok(())
}

/// Adds an IPv4 option without effect to a frame, and corrects the header.
fn add_ip_options(frame: &mut Vec<u8>) {
    const NO_OPERATION: [u8; 4] = [1; 4];
    frame.splice(34..34, NO_OPERATION);
    frame[14] += 1;
    let length = u16::from_be_bytes([frame[16], frame[17]]) + 4;
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    frame[24..26].fill(0);
    let words = frame[14..38].chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !u16::try_from(folded).expect("a few words carry once");
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

/// Without a flood, connections keep every option.
#[test]
fn calm_connections_keep_their_options() -> Result<()> {
    let pair = pair()?;
    set(&pair.server, "tcp_syncookies", "1")?;
    for end in [&pair.client, &pair.server] {
        set(end, "tcp_timestamps", "1")?;
        set(end, "tcp_sack", "1")?;
    }
    let limiter = start(&pair, MANY)?;
    serve(&pair.server, Asked::default())?;
    for _ in 0..3 {
        for client in clients()? {
            let (shown, took) = visit(&pair, client, SMALL)?;
            assert!(took < AT_ONCE, "{client}: {took:?}");
            let Options {
                timestamps,
                sack,
                scales,
            } = shown;
            assert!(timestamps && sack && scales.is_some(), "{shown:?}");
        }
    }
    let (cookies, to_socket) = counted(&limiter)?;
    // The first SYN takes the limit's token.
    assert_eq!((cookies, to_socket), (0, 5));
    assert!(limiter.stop()?.success());
    Ok(())
}

/// Real clients get no more connections past the limit than the limits of answers allow, whether or not the socket has
/// room.
#[test]
fn the_limits_of_answers_hold_for_connections() -> Result<()> {
    // If all connections come by cookies, the one of the limit's own token does, too.
    for (syn_cookies, answers) in [("1", 3), ("2", 4)] {
        let pair = pair()?;
        set(&pair.server, "tcp_syncookies", syn_cookies)?;
        let rate = format!("{{burst: {answers}, count: 1, period: 1h}}");
        let limiter = start(&pair, &rate)?;
        let came = serve(&pair.server, Asked::default())?;
        let [client, _] = clients()?;
        for _ in 0..4 {
            visit(&pair, client, SMALL)?;
        }
        let server = SocketAddr::new(server_for(client)?, PORT);
        let fifth = pair
            .client
            .enter(|| Ok(TcpStream::connect_timeout(&server, AT_ONCE)))?;
        let (cookies, to_socket) = counted(&limiter)?;
        assert_eq!(cookies + to_socket, answers);
        // It is refused at its SYN, or its cookie makes one connection too many.
        assert_eq!(fifth.is_ok(), syn_cookies == "2", "{fifth:?}");
        if fifth.is_ok() {
            wait(|| Ok(limiter.status()?["reasons"]["over_limit"].as_u64() > Some(answers)))?;
        }
        assert_eq!(came.load(Ordering::Relaxed), 4);
        assert!(limiter.stop()?.success());
    }
    Ok(())
}
