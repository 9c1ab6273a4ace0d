//! What becomes of clients while the flood runs.
//!
//! The clients' packets are made by the generator itself, by the clock, in between those of the
//! flood. So they reach the limiter whatever else is lost, and what is missing at the
//! application's socket, behind the limiter and all of the network stack, the limiter dropped.
//! Of the flood, what passes is dropped right behind the limiter: or the stack would slow the
//! flood down, and the limiter would see little of it.

use std::{
    net::{Ipv4Addr, UdpSocket},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use aya::{Ebpf, maps::PerCpuArray, programs::SocketFilter};
use bench_common::{Client, Sink};
use serde::Serialize;
use testbed::{Interrupt, Pair, monotonic_ns};

use crate::{
    contender::{Contender, Terms},
    generator::{Generator, Until},
    lane::{new_pair, to_f64},
    objects,
    scenario::{PORT, Scenario},
    stats::Spread,
};

/// What every source may send in a second, and in a burst.
pub(crate) const PER_SECOND: u64 = 1000;

/// How many clients keep within it, and what each sends in a second.
pub(crate) const GOOD_CLIENTS: usize = 10;
pub(crate) const GOOD_PER_SECOND: u64 = PER_SECOND * 8 / 10;

/// What the one client sends that does not.
pub(crate) const OVER_PER_SECOND: u64 = PER_SECOND * 5;

/// The flood alone, before: until its sources have filled every store.
const WARM_UP: Until = Until {
    time: Duration::from_secs(4),
    frames: 1 << 22,
};

const SECOND_NS: u64 = 1_000_000_000;

/// What one contender did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Quality {
    pub(crate) contender: &'static str,
    /// Percent of the good clients' packets that did not arrive.
    pub(crate) good_lost: Spread,
    /// Percent of what the limit allows the other client that arrived.
    pub(crate) over: Spread,
    /// Frames a second, of the flood and the clients.
    pub(crate) flood: Spread,
    /// Of a million frames, how many were lost before the contender; the worst run.
    pub(crate) lost_ppm: f64,
}

/// What one run gave.
struct Outcome {
    good_lost: f64,
    over: f64,
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
                flood: spread(|outcome| outcome.flood)?,
                lost_ppm: spread(|outcome| outcome.lost_ppm)?.max,
            })
        })
        .collect()
}

fn run(
    contender: &Contender,
    scenario: &Scenario,
    time: Duration,
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let terms = Terms {
        layout: scenario.layout,
        sources_log2: scenario.sources_log2,
        per_second: PER_SECOND,
        sink: Sink::Flood,
        draw: false,
    };
    let pair = new_pair(scenario.cpus)?;
    let _at_work = contender.start(&pair, &terms)?;
    let application = Application::start(&pair)?;
    let mut generator = Generator::flood_and_clients(&pair, scenario, interrupt)?;
    generator.send(WARM_UP)?;

    let lost = pair.lost()?;
    generator.set_clients(&clients(monotonic_ns()))?;
    let sent = generator.send(Until {
        time,
        frames: u64::MAX,
    })?;
    let lost = pair.lost()? - lost;
    let received = application.received()?;
    let clients = generator.clients()?;
    let (good, over) = clients.split_at(GOOD_CLIENTS);
    let over = over.first().context("no client over its limit")?;

    let good_sent: u64 = good.iter().map(|client| client.sent).sum();
    let good_received: u64 = received.iter().take(GOOD_CLIENTS).sum();
    ensure!(good_sent > 0 && over.sent > 0, "the clients sent nothing");
    let allowed = to_f64(PER_SECOND)
        + to_f64(over.last_ns - over.first_ns) * to_f64(PER_SECOND) / to_f64(SECOND_NS);
    Ok(Outcome {
        good_lost: (1.0 - to_f64(good_received) / to_f64(good_sent)) * 100.0,
        over: to_f64(received[GOOD_CLIENTS]) / allowed * 100.0,
        flood: sent.rate,
        lost_ppm: to_f64(lost) / to_f64(sent.frames) * 1e6,
    })
}

/// The good ones, and the one that is not; they start one after the other.
fn clients(now_ns: u64) -> Vec<Client> {
    let paces = [GOOD_PER_SECOND; GOOD_CLIENTS];
    paces
        .into_iter()
        .chain([OVER_PER_SECOND])
        .zip(1..)
        .map(|(per_second, number)| Client {
            interval_ns: SECOND_NS / per_second,
            due_ns: now_ns + number * 100_000,
            ..Client::default()
        })
        .collect()
}

/// A UDP socket on the server, whose filter counts what arrives and drops it.
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
        filter.load()?;
        let socket = pair
            .server
            .enter(|| Ok(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?))?;
        filter.attach(&socket)?;
        Ok(Self {
            ebpf,
            _socket: socket,
        })
    }

    /// What arrived from each client.
    fn received(&self) -> Result<Vec<u64>> {
        let map = self.ebpf.map("RECEIVED").context("no map RECEIVED")?;
        let map = PerCpuArray::<_, u64>::try_from(map)?;
        (0..bench_common::CLIENTS)
            .map(|client| Ok(map.get(&client, 0)?.iter().sum()))
            .collect()
    }
}
