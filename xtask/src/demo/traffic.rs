//! Sends the clients' packets, and counts the packets that pass.

use std::{
    array,
    num::NonZeroU32,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use testbed::{Interrupt, Load, Pair, Progress, SendReport, UdpSink, UdpSource};

use super::{
    clients::{self, CLIENTS},
    daemon::{Daemon, LimitState},
    live::{ClientPackets, LiveTable, TICK},
    verdict::Window,
};

const DURATION: Duration = Duration::from_secs(10);

/// The time of the queries for explanations before the end of the traffic, while the buckets are in use.
const EXPLAIN_EARLY: Duration = Duration::from_millis(300);

/// About the size of a small DNS response, in bytes.
const PAYLOAD_LENGTH: usize = 64;

/// The packets of a client, sent and passed.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) sent: u64,
    pub(super) passed: u64,
    pub(super) window: Window,
    /// The client's budgets shortly before the end of the traffic.
    pub(super) limit_states: Vec<LimitState>,
}

/// The packets of all clients.
#[derive(Debug)]
pub(super) struct Report {
    /// In the order of [`CLIENTS`].
    pub(super) outcomes: Vec<Outcome>,
    /// Packets lost outside the limiter. Above zero, the outcomes are not exact.
    pub(super) lost: u64,
}

/// Runs all clients at once; `None`: the user interrupted.
pub(super) fn run(
    pair: &Pair,
    daemon: &mut Daemon,
    interrupt: &Interrupt,
) -> Result<Option<Report>> {
    let sink = UdpSink::new(&pair.server, clients::port())?;
    let sources = CLIENTS
        .iter()
        .map(|client| UdpSource::new(&pair.client, client.address, client.destination()))
        .collect::<Result<Vec<_>>>()?;
    let progress: Vec<Progress> = sources.iter().map(UdpSource::progress).collect();

    let (watched, sent) = thread::scope(|scope| {
        let sending: Vec<_> = CLIENTS
            .iter()
            .zip(&sources)
            .map(|(client, source)| {
                scope.spawn(|| {
                    let rate = NonZeroU32::new(client.per_second).context("a rate of zero")?;
                    source.send(Load::steady(rate, DURATION), PAYLOAD_LENGTH)
                })
            })
            .collect();
        let watched = watch(&sink, &progress, daemon, interrupt);
        if !matches!(watched, Ok(Some(_))) {
            progress.iter().for_each(Progress::stop);
        }
        let sent: Result<Vec<SendReport>> = sending
            .into_iter()
            .map(|thread| thread.join().ok().context("a sending thread panicked")?)
            .collect();
        (watched, sent)
    });
    let Some(explanations) = watched? else {
        return Ok(None);
    };

    let tally = sink.finish()?;
    let outcomes = CLIENTS
        .iter()
        .zip(sent?)
        .zip(explanations)
        .map(|((client, sent), limit_states)| {
            let passed = tally.of(client.address);
            Outcome {
                sent: sent.packets,
                passed: passed.packets,
                window: Window {
                    first: sent.first_ns,
                    sent: sent.last_ns,
                    received: passed.last_ns,
                },
                limit_states,
            }
        })
        .collect();
    let lost = tally.lost + pair.lost()?;
    Ok(Some(Report { outcomes, lost }))
}

/// Shows the traffic until its end, and gets each client's explanations shortly before; `None`: the user
/// interrupted.
fn watch(
    sink: &UdpSink,
    progress: &[Progress],
    daemon: &mut Daemon,
    interrupt: &Interrupt,
) -> Result<Option<Vec<Vec<LimitState>>>> {
    let start = Instant::now();
    let mut live = LiveTable::new()?;
    let mut explanations = None;
    while start.elapsed() < DURATION {
        if interrupt.has_arrived() {
            live.end();
            return Ok(None);
        }
        daemon.check()?;
        live.show(&counts(sink, progress));
        if explanations.is_none() && start.elapsed() + EXPLAIN_EARLY >= DURATION {
            explanations = Some(explain(daemon)?);
        }
        thread::sleep(TICK);
    }
    live.show(&counts(sink, progress));
    live.end();
    match explanations {
        Some(explanations) => Ok(Some(explanations)),
        // A very busy machine may sleep through the last moments.
        None => Ok(Some(explain(daemon)?)),
    }
}

fn explain(daemon: &Daemon) -> Result<Vec<Vec<LimitState>>> {
    CLIENTS
        .iter()
        .map(|client| daemon.explain(client.address))
        .collect()
}

fn counts(sink: &UdpSink, progress: &[Progress]) -> ClientPackets {
    let tally = sink.so_far();
    array::from_fn(|client| {
        let passed = tally.of(CLIENTS[client].address).packets;
        (progress[client].sent(), passed)
    })
}
