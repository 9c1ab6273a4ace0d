//! Measures clients during a flood.
//!
//! The generator itself sends the clients' packets, by the clock, between the flood's. They
//! therefore reach the limiter even when other packets get lost, and any client packet missing at
//! the application's socket was dropped by the limiter. Passing packets of the flood are dropped
//! directly behind the limiter: otherwise the network stack would slow the flood down, and the
//! limiter would see little of it.

use std::{
    net::{Ipv4Addr, UdpSocket},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use aya::{Ebpf, maps::PerCpuArray, programs::SocketFilter};
use bench_common::{Client, Sink, Source, client_source};
use limiter_datapath::kernel::verify;
use serde::Serialize;
use testbed::{Interrupt, Pair, monotonic_ns};

use crate::{
    contender::{Contender, Override, Terms},
    float::to_f64,
    generator::{Generator, StopCondition},
    lane::new_pair,
    objects,
    scenario::{PORT, Scenario},
    stats::Spread,
};

/// How many packets a source may send per second, and in a burst.
pub(crate) const PER_SECOND: u64 = 1000;

/// The number of clients within the limit, and the packets that each sends per second.
pub(crate) const GOOD_CLIENTS: usize = 10;
pub(crate) const GOOD_PER_SECOND: u64 = PER_SECOND * 8 / 10;

/// The packets per second of the one client over the limit.
pub(crate) const OVER_PER_SECOND: u64 = PER_SECOND * 5;

/// The packets per minute of another client's override, which allows no two at once.
pub(crate) const SLOW_PER_MINUTE: u64 = 12;

/// The packets per minute of that client: one every two seconds. Stores forget only clients that
/// pause. In two seconds, the flood fills a store of a million sources more than once, while the
/// bucket stays in debt for three more seconds. (The kernel's LRU map keeps an entry for long if it
/// was looked up twice before its turn: any store limits a client that sends faster.)
pub(crate) const SLOW_SENDS_PER_MINUTE: u64 = 30;

/// Floods without clients until the sources have filled every store.
const WARM_UP: StopCondition = StopCondition {
    time: Duration::from_secs(4),
    frames: 1 << 22,
};

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;

/// The results of one contender.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Quality {
    pub(crate) contender: &'static str,
    /// The lost packets of the good clients, in percent.
    pub(crate) good_lost: Spread,
    /// The admitted packets of the client over its limit, in percent of the allowed ones.
    pub(crate) over: Spread,
    /// The same for the slow client; `None` if the contender has no overrides.
    pub(crate) slow: Option<Spread>,
    /// Frames per second, of the flood and the clients.
    pub(crate) flood: Spread,
    /// Frames lost before the contender, per million, in the worst run.
    pub(crate) lost_ppm: f64,
}

/// The results of one run.
struct Outcome {
    good_lost: f64,
    over: f64,
    slow: Option<f64>,
    flood: f64,
    lost_ppm: f64,
}

/// Measures contenders under one flood, in turns.
pub(crate) fn measure(
    contenders: &[Contender],
    scenario: &Scenario,
    rounds: usize,
    time: Duration,
    interrupt: &Interrupt,
    mut progress: impl FnMut(&str),
) -> Result<Vec<Quality>> {
    let mut outcomes: Vec<Vec<Outcome>> = contenders.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (contender, outcomes) in contenders.iter().zip(&mut outcomes) {
            progress(&format!("{}: clients under {scenario}", contender.name));
            let outcome = run(contender, scenario, time, interrupt)
                .with_context(|| format!("{}: clients under {scenario}", contender.name))?;
            outcomes.push(outcome);
        }
    }
    contenders
        .iter()
        .zip(&outcomes)
        .map(|(contender, outcomes)| {
            let spread = |of: fn(&Outcome) -> f64| {
                Spread::new(outcomes.iter().map(of).collect()).context("no rounds")
            };
            Ok(Quality {
                contender: contender.name,
                good_lost: spread(|outcome| outcome.good_lost)?,
                over: spread(|outcome| outcome.over)?,
                slow: Spread::new(outcomes.iter().filter_map(|outcome| outcome.slow).collect()),
                flood: spread(|outcome| outcome.flood)?,
                lost_ppm: spread(|outcome| outcome.lost_ppm)?.max,
            })
        })
        .collect()
}

/// Returns the contenders' settings.
pub(crate) fn terms(scenario: &Scenario) -> Result<Terms> {
    Ok(Terms {
        layout: scenario.layout,
        sources_log2: scenario.sources_log2,
        per_second: PER_SECOND,
        overridden: Some(slow_override()?),
        sink: Sink::Flood,
        draw: false,
    })
}

fn run(
    contender: &Contender,
    scenario: &Scenario,
    time: Duration,
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let terms = terms(scenario)?;
    let pair = new_pair(scenario.cpus)?;
    let _at_work = contender.start(&pair, &terms)?;
    let application = Application::start(&pair)?;
    let mut generator = Generator::flood_and_clients(&pair, scenario, interrupt)?;
    generator.send(WARM_UP)?;

    let lost = pair.lost()?;
    generator.set_clients(&clients(monotonic_ns()))?;
    let sent = generator.send(StopCondition {
        time,
        frames: u64::MAX,
    })?;
    let lost = pair.lost()? - lost;
    let received = application.received()?;
    let clients = generator.clients()?;
    let admitted = |number: usize, burst: u64, count: u64, period_ns: u64| -> Result<f64> {
        let client = &clients[number];
        ensure!(client.sent > 0, "client {number} sent nothing");
        // In whole packets: the bucket's first tokens, and the tokens added since.
        let allowed = burst + (client.last_ns - client.first_ns) * count / period_ns;
        Ok(to_f64(received[number]) / to_f64(allowed) * 100.0)
    };

    let good_sent: u64 = clients[..GOOD_CLIENTS]
        .iter()
        .map(|client| client.sent)
        .sum();
    let good_received: u64 = received[..GOOD_CLIENTS].iter().sum();
    ensure!(good_sent > 0, "the good clients sent nothing");
    let slow = contender
        .has_overrides()
        .then(|| admitted(SLOW, 1, SLOW_PER_MINUTE, MINUTE_NS));
    Ok(Outcome {
        good_lost: (1.0 - to_f64(good_received) / to_f64(good_sent)) * 100.0,
        over: admitted(OVER, PER_SECOND, PER_SECOND, SECOND_NS)?,
        slow: slow.transpose()?,
        flood: sent.rate,
        lost_ppm: to_f64(lost) / to_f64(sent.frames) * 1e6,
    })
}

/// The numbers of the two clients over their limits, after the good ones.
const OVER: usize = GOOD_CLIENTS;
const SLOW: usize = OVER + 1;

/// Returns the good clients and the other two. They start one after the other.
fn clients(now_ns: u64) -> Vec<Client> {
    [SECOND_NS / GOOD_PER_SECOND; GOOD_CLIENTS]
        .into_iter()
        .chain([
            SECOND_NS / OVER_PER_SECOND,
            MINUTE_NS / SLOW_SENDS_PER_MINUTE,
        ])
        .zip(1..)
        .map(|(interval_ns, number)| Client {
            interval_ns,
            due_ns: now_ns + number * 100_000,
            ..Client::default()
        })
        .collect()
}

fn slow_override() -> Result<Override> {
    let Source::V4(address) = client_source(u32::try_from(SLOW)?) else {
        bail!("clients have IPv4 addresses");
    };
    Ok(Override {
        address: address.into(),
        per_minute: SLOW_PER_MINUTE,
    })
}

/// A UDP socket on the server, with a filter that counts and drops the arriving packets.
struct Application {
    ebpf: Ebpf,
    _socket: UdpSocket,
}

impl Application {
    fn start(pair: &Pair) -> Result<Self> {
        let mut ebpf = Ebpf::load(objects::BENCH)?;
        let filter: &mut SocketFilter = ebpf
            .program_mut("sink")
            .context("the object has no sink")?
            .try_into()?;
        verify(|| filter.load())?;
        let socket = pair
            .server
            .enter(|| Ok(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?))?;
        filter.attach(&socket)?;
        Ok(Self {
            ebpf,
            _socket: socket,
        })
    }

    /// Returns the number of packets that arrived from each client.
    fn received(&self) -> Result<Vec<u64>> {
        let map = self.ebpf.map("RECEIVED").context("no map RECEIVED")?;
        let map = PerCpuArray::<_, u64>::try_from(map)?;
        (0..bench_common::CLIENTS)
            .map(|client| Ok(map.get(&client, 0)?.iter().sum()))
            .collect()
    }
}
