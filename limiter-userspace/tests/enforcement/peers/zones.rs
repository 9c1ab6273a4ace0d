//! Water torture: a forged flood of random names below one zone of a server that has a thousand.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    num::NonZeroU32,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Load, Pair, RawSender};

use super::{server::Server, start};
use crate::{pair, take_turn};

const ZONES: usize = 1_000;

/// The attacked one.
const ATTACKED: usize = 7;

/// How many queries of each zone pass a second.
const RATE: u64 = 500;

/// How many random names the attacker has prepared, how many packets it sends a second, and for how long.
const NAMES: u32 = 20_000;
const ATTACK_RATE: NonZeroU32 = NonZeroU32::new(100_000).unwrap();
const ATTACK: Duration = Duration::from_secs(5);

/// How many queries the client asks meanwhile, each of another zone than the one before, and how often: it
/// waits for no answer, so what is lost slows it as little as it does many clients.
const QUERIES: u16 = 1_000;
const PACE: Duration = Duration::from_millis(3);

/// How long an answer may take, on a machine whose two CPUs the attack keeps busy.
const PATIENCE: Duration = Duration::from_secs(1);

fn zone(number: usize) -> String {
    format!("z{number}.test")
}

/// Returns a query for the addresses of a name.
fn query(id: u16, name: &str) -> Vec<u8> {
    let mut query = id.to_be_bytes().to_vec();
    query.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        query.extend(u8::try_from(label.len()));
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    query
}

/// Returns the attacker's frames: random names below the attacked zone, each from a source of its own.
fn flood() -> Result<Vec<Vec<u8>>> {
    let mut random = fastrand::Rng::with_seed(1);
    let frames = (0..NAMES).map(|number| {
        let source = Ipv4Addr::from(0x0b00_0000 + number * 257);
        let name = format!("{:x}.{}", random.u64(..), zone(ATTACKED));
        let frame = Frame::new(IpAddr::V4(source), "10.77.0.1".parse()?);
        frame.udp(random.u16(1024..), 53, &query(1, &name))
    });
    frames.collect()
}

/// Asks for a name of each of the other zones in turn; returns how many first tries were answered.
fn answered(pair: &Pair) -> Result<usize> {
    let server: SocketAddr = "10.77.0.1:53".parse()?;
    let socket = pair.client.enter(|| {
        let socket = UdpSocket::bind("10.77.0.2:0")?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(socket)
    })?;
    thread::scope(|scope| {
        let hearing = scope.spawn(|| {
            let mut answered = BTreeSet::new();
            let mut answer = [0; 512];
            while let Ok(length) = socket.recv(&mut answer) {
                // No error, and one answer.
                if length > 12 && answer[3] % 16 == 0 && answer[7] == 1 {
                    answered.insert([answer[0], answer[1]]);
                }
            }
            answered.len()
        });
        let zones = (0..ZONES).cycle().filter(|number| *number != ATTACKED);
        for (id, number) in (0..QUERIES).zip(zones) {
            socket.send(&query(id, &format!("www.{}", zone(number))))?;
            thread::sleep(PACE);
        }
        Ok(hearing.join().expect("it does not panic"))
    })
}

#[test]
fn a_flood_of_random_names_of_one_zone_leaves_the_others_served() -> Result<()> {
    let _turn = take_turn();
    let pair = pair()?;
    let zones: Vec<String> = (0..ZONES).map(zone).collect();
    // The attacker's names are answered, too: NSD sends several answers at once, and loses those behind one
    // that has nowhere to go.
    let anywhere = ["route", "add", "default", "via", "10.77.0.2"];
    pair.server.ip(&anywhere)?;
    let _nsd = Server::nsd_with_zones(&pair, &zones)?;
    let mut configuration = format!(
        "limits:\n  Zones: {{id: zone, cost: packets, burst: {RATE}, count: {RATE}, period: 1s, \
         match: {{protocol: udp, destination-port: 53}}}}\nzones:\n"
    );
    for zone in &zones {
        writeln!(configuration, "- {zone}")?;
    }
    let limiter = start(&pair, &configuration, "native")?;
    let frames = flood()?;
    let (sent, answered) = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let load = Load::steady(ATTACK_RATE, ATTACK);
            RawSender::new(&pair.client, CLIENT_INTERFACE)?.send(load, &frames)
        });
        // The burst is spent.
        thread::sleep(ATTACK / 20);
        let answered = answered(&pair);
        let sent = sending.join().expect("it does not panic");
        Ok::<_, anyhow::Error>((sent?, answered?))
    })?;
    let status = limiter.status()?;
    let count = |what: &str| status["limits"]["Zones"][what].as_u64();
    let passed = count("passed_packets").context("no count")?;
    let dropped = count("dropped_packets").context("no count")?;
    println!("{answered} of {QUERIES} answered; of the attack {sent:?} {dropped} dropped");
    // One in a hundred may be lost by a busy machine.
    let wanted = usize::from(QUERIES) * 99 / 100;
    ensure!(answered >= wanted, "{answered} of {QUERIES}");
    // The attack's bound: a burst and the rate, for as long as it took.
    let others = u64::from(QUERIES);
    let seconds = 2 + (sent.last_ns - sent.first_ns) / 1_000_000_000;
    ensure!(
        dropped > 0 && passed <= others + RATE * (1 + seconds),
        "{status:#}"
    );
    let attacked = limiter.show(&["offenders", "--by", "name", "--count", "1"])?;
    ensure!(attacked.contains(&zone(ATTACKED)), "{attacked}");
    Ok(())
}
