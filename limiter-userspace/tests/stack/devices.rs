//! Devices other than network cards: whether they can be limited, and how exactly. Most kernels lack some of them, so
//! the test also runs on emulated machines.

use std::{
    io::Write as _,
    net::{IpAddr, SocketAddr, UdpSocket},
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testbed::{CLIENT_INTERFACE, Limiter, Namespace, Pair, SERVER_INTERFACE};

/// The packets that each device gets, and the limit's burst.
const SENT: u64 = 20;
const BURST: u64 = 5;

const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Every packet is counted, under its own source.
    Exact,
    /// The limiter refuses the device, because it cannot read its frames.
    Refused,
}

/// A kind of device. Both ends get one.
struct Kind {
    name: &'static str,
    /// Commands of ip for an end: `THIS` and `OTHER` are the two ends' numbers, `BELOW` is the underlying interface.
    make: &'static str,
    /// The network of the addresses on the device; an end's number is the last part of its address.
    network: &'static str,
    expected: Expected,
}

const WIREGUARD: &str = "wireguard";

const KINDS: [Kind; 16] = [
    Kind {
        name: "vlan",
        make: "link add link BELOW name t0 type vlan id 5\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "macvlan",
        make: "link add link BELOW name t0 type macvlan mode bridge\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "ipvlan in mode l2",
        make: "link add link BELOW name t0 type ipvlan mode l2\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "ipvlan in mode l3",
        // The device below routes the packets and finds the neighbours.
        make: "link add link BELOW name t0 type ipvlan mode l3\n\
               route add 10.99.0.0/24 dev BELOW metric 500\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "ipvlan in mode l3s",
        make: "link add link BELOW name t0 type ipvlan mode l3s\n\
               route add 10.99.0.0/24 dev BELOW metric 500\n",
        network: "10.99.0.",
        expected: Expected::Refused,
    },
    Kind {
        name: "bond",
        make: "link add t0 type bond mode active-backup\nlink set BELOW down\nlink set BELOW master t0\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "vxlan",
        make: "link add t0 type vxlan id 5 dstport 4789 local 10.77.0.THIS remote 10.77.0.OTHER\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "gretap",
        make: "link add t0 type gretap local 10.77.0.THIS remote 10.77.0.OTHER\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "gre",
        make: "link add t0 type gre local 10.77.0.THIS remote 10.77.0.OTHER\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "gre without a peer",
        make: "link add t0 type gre local 10.77.0.THIS key 5\n\
               neighbour add 10.99.0.OTHER lladdr 10.77.0.OTHER dev t0 nud permanent\n",
        network: "10.99.0.",
        expected: Expected::Refused,
    },
    Kind {
        name: "ipip",
        make: "link add t0 type ipip local 10.77.0.THIS remote 10.77.0.OTHER\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "sit",
        make: "link add t0 type sit local 10.77.0.THIS remote 10.77.0.OTHER\n",
        network: "fd99::",
        expected: Expected::Exact,
    },
    Kind {
        name: "ip6tnl of IPv4",
        make: "link add t0 type ip6tnl mode ipip6 local fd77::THIS remote fd77::OTHER\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: "ip6tnl of IPv6",
        make: "link add t0 type ip6tnl mode ip6ip6 local fd77::THIS remote fd77::OTHER\n",
        network: "fd99::",
        expected: Expected::Exact,
    },
    Kind {
        name: "ip6gre",
        make: "link add t0 type ip6gre local fd77::THIS remote fd77::OTHER\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
    Kind {
        name: WIREGUARD,
        make: "link add t0 type wireguard\n",
        network: "10.99.0.",
        expected: Expected::Exact,
    },
];

/// The result for a kind of device.
struct Outcome {
    /// A description for the output.
    reported: String,
    is_as_expected: bool,
}

fn set_up(namespace: &Namespace, kind: &Kind, below: &str, this: &str, other: &str) -> Result<()> {
    let commands = kind.make.replace("THIS", this);
    let commands = commands.replace("OTHER", other).replace("BELOW", below);
    let prefix = if kind.network.contains(':') { 64 } else { 24 };
    // Neighbours and routes are set up last, when the device is up.
    let (others, links): (Vec<_>, Vec<_>) =
        (commands.lines()).partition(|line| !line.starts_with("link"));
    namespace.ip_batch(&format!(
        "{}\naddr add {}{this}/{prefix} dev t0{}\nlink set {below} up\nlink set t0 up\n{}\n",
        links.join("\n"),
        kind.network,
        if prefix == 64 { " nodad" } else { "" },
        others.join("\n"),
    ))
}

fn try_kind(kind: &Kind) -> Result<Outcome> {
    let networks = |texts: [&str; 2]| texts.map(str::parse);
    let [[v4, v6], [other_v4, other_v6]] = [
        ["10.77.0.2/24", "fd77::2/64"],
        ["10.77.0.1/24", "fd77::1/64"],
    ]
    .map(networks);
    let pair = Pair::new(&[v4?, v6?], &[other_v4?, other_v6?])?;
    for (namespace, below, this, other) in [
        (&pair.server, SERVER_INTERFACE, "1", "2"),
        (&pair.client, CLIENT_INTERFACE, "2", "1"),
    ] {
        if let Err(error) = set_up(namespace, kind, below, this, other) {
            return Ok(Outcome {
                reported: format!("this kernel has none: {error}"),
                is_as_expected: true,
            });
        }
    }
    if kind.name == WIREGUARD {
        join_wireguard(&pair)?;
    }
    let limit = format!(
        "{{id: ipAddress, cost: packets, burst: {BURST}, count: 1, period: 1h, match: {{protocol: udp}}}}"
    );
    let configuration = format!("limits: {{Each: {limit}}}\n");
    let limiter = match Limiter::start(
        Path::new(env!("CARGO_BIN_EXE_limiter")),
        &pair.server,
        &configuration,
        &["-i", "t0", "--metrics", "off"],
    ) {
        Ok(limiter) => limiter,
        Err(refused) => {
            return Ok(Outcome {
                reported: format!("refused: {refused}"),
                is_as_expected: kind.expected == Expected::Refused,
            });
        }
    };
    let source: IpAddr = format!("{}2", kind.network).parse()?;
    let destination = SocketAddr::new(format!("{}1", kind.network).parse()?, 7);
    pair.client.enter(|| {
        let socket = UdpSocket::bind((source, 0))?;
        for _ in 0..SENT {
            socket.send_to(&[0; 100], destination)?;
        }
        Ok(())
    })?;
    let (passed, dropped) = counted(&limiter)?;
    let offenders = limiter.offenders()?;
    let of_source = (offenders["offenders"].as_array().into_iter().flatten())
        .filter(|offender| offender["id"] == source.to_string())
        .filter_map(|offender| offender["drops"].as_u64())
        .sum::<u64>();
    let mode = limiter.status()?["interfaces"][0]["mode"].clone();
    ensure!(limiter.stop()?.success());
    Ok(Outcome {
        reported: format!("{mode}, {passed} passed, {dropped} dropped, {of_source} of the source"),
        is_as_expected: kind.expected == Expected::Exact
            && (passed, dropped, of_source) == (BURST, SENT - BURST, SENT - BURST),
    })
}

/// Makes each end of a WireGuard tunnel the other's peer.
fn join_wireguard(pair: &Pair) -> Result<()> {
    let ends = [(&pair.server, "1"), (&pair.client, "2")];
    let [server, client] = [
        wg(&pair.server, &["genkey"], "")?,
        wg(&pair.client, &["genkey"], "")?,
    ];
    let public = |key: &str| wg(&pair.server, &["pubkey"], key);
    let peers = [
        (&server, public(&client)?, "2"),
        (&client, public(&server)?, "1"),
    ];
    for ((namespace, _), (key, peer, number)) in ends.into_iter().zip(peers) {
        let endpoint = format!("10.77.0.{number}:51820");
        let set = [
            "set",
            "t0",
            "listen-port",
            "51820",
            "private-key",
            "/proc/self/fd/0",
        ];
        let peer = [
            "peer",
            peer.trim(),
            "allowed-ips",
            "10.99.0.0/24",
            "endpoint",
            &endpoint,
        ];
        wg(namespace, &[set, peer].concat(), key)?;
    }
    Ok(())
}

/// Runs `wg` with that input; returns its output.
fn wg(namespace: &Namespace, arguments: &[&str], input: &str) -> Result<String> {
    let mut command = namespace.command("wg");
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot run wg")?;
    child
        .stdin
        .take()
        .context("no stdin")?
        .write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "wg fails: {arguments:?}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns how many packets passed and how many were dropped, once all are counted or patience is over.
fn counted(limiter: &Limiter) -> Result<(u64, u64)> {
    let begun = Instant::now();
    loop {
        let each = &limiter.status()?["limits"]["Each"];
        let [passed, dropped] =
            ["passed_packets", "dropped_packets"].map(|field| each[field].as_u64().unwrap_or(0));
        if passed + dropped >= SENT || begun.elapsed() > PATIENCE {
            return Ok((passed, dropped));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn devices_are_limited_exactly_or_refused() -> Result<()> {
    let mut wrong = Vec::new();
    for kind in &KINDS {
        let Outcome {
            reported,
            is_as_expected,
        } = try_kind(kind)?;
        println!("{}: {reported}", kind.name);
        if !is_as_expected {
            wrong.push(format!("{}: {reported}", kind.name));
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}
