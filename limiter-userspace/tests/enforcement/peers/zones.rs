//! Water torture: a forged flood of random names in one zone of a server that has a thousand zones.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    num::NonZeroU32,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Load, Pair, PinDirectory, RawSender, SERVER_INTERFACE,
    SendReport,
};

use super::{binary, server::Server};
use crate::pair;

const ZONES: usize = 1_000;

/// The attacked zone.
const ATTACKED: usize = 7;

/// How many queries of each zone pass per second.
const RATE: u64 = 500;

/// How many new names of each zone pass per second, under a limit on new names.
const NEW_RATE: u64 = 50;

/// How many names of the attacked zone its clients ask for.
const KNOWN_NAMES: u64 = 100;

/// The attacker's packets per second, and for how long.
const ATTACK_RATE: NonZeroU32 = NonZeroU32::new(50_000).unwrap();
const ATTACK: Duration = Duration::from_secs(3);

/// The client's queries meanwhile, and the pause between them; consecutive queries are for different zones. The client
/// does not wait for responses, so a lost one slows it no more than it would slow many clients.
const QUERIES: u16 = 600;
const PACE: Duration = Duration::from_millis(3);

/// How long a response may take while the attack keeps both of the machine's CPUs busy.
const PATIENCE: Duration = Duration::from_secs(1);

fn zone(number: usize) -> String {
    format!("z{number}.test")
}

/// Returns a query for the addresses of a name.
pub(super) fn query(id: u16, name: &str) -> Vec<u8> {
    let mut query = id.to_be_bytes().to_vec();
    query.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        query.extend(u8::try_from(label.len()));
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    query
}

/// Returns the attacker's frames: this many random names in the attacked zone, each from another source.
fn flood(names: u32) -> Result<Vec<Vec<u8>>> {
    let mut random = fastrand::Rng::with_seed(1);
    let frames = (0..names).map(|number| {
        let source = Ipv4Addr::from(0x0b00_0000 + number * 257);
        let name = format!("{:x}.{}", random.u64(..), zone(ATTACKED));
        let frame = Frame::new(IpAddr::V4(source), "10.77.0.1".parse()?);
        frame.udp(random.u16(1024..), 53, &query(1, &name))
    });
    frames.collect()
}

/// Returns this many names, from each of the other zones in turn.
fn names_of_others(count: usize) -> impl Iterator<Item = String> {
    let zones = (0..ZONES).cycle().filter(|number| *number != ATTACKED);
    zones
        .take(count)
        .map(|number| format!("www.{}", zone(number)))
}

/// Asks for names in turn; returns the positions of the names answered at the first try.
fn answered(pair: &Pair, names: &[String]) -> Result<BTreeSet<u16>> {
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
            let mut response = [0; 512];
            while let Ok(length) = socket.recv(&mut response) {
                // No error, and one response.
                if length > 12 && response[3] % 16 == 0 && response[7] == 1 {
                    answered.insert(u16::from_be_bytes([response[0], response[1]]));
                }
            }
            answered
        });
        for (id, name) in (0..).zip(names) {
            socket.send(&query(id, name))?;
            thread::sleep(PACE);
        }
        Ok(hearing.join().expect("it does not panic"))
    })
}

/// Sends the attacker's frames and asks for names meanwhile; returns the frames sent, and the positions of the names
/// answered at the first try.
fn attack(
    pair: &Pair,
    frames: &[Vec<u8>],
    names: &[String],
) -> Result<(SendReport, BTreeSet<u16>)> {
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let load = Load::steady(ATTACK_RATE, ATTACK);
            RawSender::new(&pair.client, CLIENT_INTERFACE)?.send(load, frames)
        });
        // By now the burst is spent.
        thread::sleep(ATTACK / 20);
        let answered = answered(pair, names);
        let sent = sending.join().expect("it does not panic");
        Ok((sent?, answered?))
    })
}

/// Starts a server with all zones, and a pinned limiter with these limits in front of it.
fn serve(pair: &Pair, pins: &PinDirectory, limits: &str) -> Result<(Server, Limiter)> {
    let zones: Vec<String> = (0..ZONES).map(zone).collect();
    // Lets responses to the attacker leave: NSD sends several responses at once, and loses the ones behind an
    // unroutable response.
    let anywhere = ["route", "add", "default", "via", "10.77.0.2"];
    pair.server.ip(&anywhere)?;
    let nsd = Server::nsd_with_zones(pair, &zones)?;
    let mut configuration = format!("limits:\n{limits}\nzones:\n");
    for zone in &zones {
        writeln!(configuration, "- {zone}")?;
    }
    pair.compute_checksums()?;
    let arguments = ["-i", SERVER_INTERFACE, "--mode", "native", &pins.argument()];
    let limiter = Limiter::start(binary(), &pair.server, &configuration, &arguments)?;
    Ok((nsd, limiter))
}

#[test]
fn a_flood_of_random_names_of_one_zone_leaves_the_others_served() -> Result<()> {
    let pair = pair()?;
    let limits = format!(
        "  Zones: {{id: zone, cost: packets, burst: {RATE}, count: {RATE}, period: 1s, \
         match: {{protocol: udp, destination-port: 53}}}}"
    );
    let pins = PinDirectory::new()?;
    let (_nsd, limiter) = serve(&pair, &pins, &limits)?;
    // Few names, which the attacker repeats.
    let frames = flood(20_000)?;
    let names: Vec<String> = names_of_others(QUERIES.into()).collect();
    let (sent, answered) = attack(&pair, &frames, &names)?;
    let answered = answered.len();
    let status = limiter.status()?;
    let count = |what: &str| status["limits"]["Zones"][what].as_u64();
    let passed = count("passed_packets").context("no count")?;
    let dropped = count("dropped_packets").context("no count")?;
    println!("{answered} of {QUERIES} answered; of the attack {sent:?} {dropped} dropped");
    // A busy machine may lose one in a hundred.
    let wanted = usize::from(QUERIES) * 99 / 100;
    ensure!(answered >= wanted, "{answered} of {QUERIES}");
    // The attack's bound: a burst, and the rate for the attack's duration.
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

/// With a limit on new names alone, even cached names of the attacked zone are answered.
#[test]
fn a_flood_of_random_names_of_one_zone_leaves_its_known_names_served() -> Result<()> {
    let pair = pair()?;
    let limits = format!(
        "  New: {{id: zone, cost: new-names, burst: {KNOWN_NAMES}, count: {NEW_RATE}, period: 1s}}"
    );
    let pins = PinDirectory::new()?;
    let (_nsd, mut limiter) = serve(&pair, &pins, &limits)?;
    let known: Vec<String> = (0..KNOWN_NAMES)
        .map(|number| format!("host{number}.{}", zone(ATTACKED)))
        .collect();
    let half = usize::from(QUERIES) / 2;
    // All of them were queried before the attack.
    let before: Vec<String> = (known.iter().cloned())
        .chain(names_of_others(ZONES - 1))
        .collect();
    let learned = answered(&pair, &before)?.len();
    ensure!(learned == before.len(), "{learned} of {}", before.len());
    // Cached names survive a restart of the daemon and a reload.
    limiter.kill()?;
    limiter.restart()?;
    let text = fs::read_to_string(limiter.configuration())?;
    let text = text.replace("1s}", "1000ms, mode: enforce, deny: drop}");
    limiter.configure(&text)?;
    limiter.show(&["reload"])?;
    // Enough names that hardly any is repeated, because a name that has passed once is cached.
    let frames = flood(150_000)?;
    // Names of the attacked zone have even positions.
    let names: Vec<String> = (known.iter().cycle().take(half).cloned())
        .zip(names_of_others(half))
        .flat_map(<[String; 2]>::from)
        .collect();
    let (sent, answered) = attack(&pair, &frames, &names)?;
    let attacked = answered.iter().filter(|id| **id % 2 == 0).count();
    let others = answered.len() - attacked;
    let status = limiter.status()?;
    let count = |what: &str| status["limits"]["New"][what].as_u64();
    let passed = count("passed_packets").context("no count")?;
    let dropped = count("dropped_packets").context("no count")?;
    println!(
        "of {half} each: {attacked} of the attacked zone's known names answered, {others} of the others; of the \
         attack {sent:?} {dropped} dropped; {passed} new names in all"
    );
    // A busy machine may lose one in a hundred.
    let wanted = half * 99 / 100;
    ensure!(
        attacked >= wanted && others >= wanted,
        "{attacked}, {others} of {half}"
    );
    // The attack's bound: a burst, and the rate for the attack's duration.
    let seconds = 2 + (sent.last_ns - sent.first_ns) / 1_000_000_000;
    let bound = before.len() as u64 + KNOWN_NAMES + NEW_RATE * seconds;
    ensure!(
        dropped > 0 && passed <= bound,
        "{passed} above {bound}: {status:#}"
    );
    Ok(())
}
