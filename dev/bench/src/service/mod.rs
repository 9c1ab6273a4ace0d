//! Measures the service: a good client's responses from a real server during a flood.
//!
//! An open loop: one CPU sends the flood by the clock; on another the kernel receives and the
//! server answers, so a slow defence does not slow the flood down. Questions are asked by the clock
//! as well, whether or not earlier ones are answered.

mod clients;
mod counters;
pub(crate) mod course;
mod cpu_spinner;
mod defence;
mod defence_settings;
mod dns;
mod flood;
mod forger;
mod growth;
mod processes;
mod rates;
mod server;
mod setup;

use std::{
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use bench_common::{BOTS, Group};
use serde::Serialize;
use testbed::{Interrupt, Pair};

pub(crate) use self::{
    clients::TRIES,
    defence::{ANSWERS, AUTO, DEFENCES, Defence, IDEAL, KNOWN_FIRST, LIMITER, NOTHING, SYNPROXY},
    flood::{Attack, FLOODS, Flood, Rate},
};
use self::{
    clients::{PlannedQuestion, Questions, Tally, ask, shake_hands, visits, working_day},
    counters::{Counters, Turns, Way},
    cpu_spinner::CpuSpinner,
    defence::ActiveDefence,
    flood::SENIOR,
    forger::Forger,
    growth::MonotonicCounter as _,
    rates::{Follower, RateSample},
    server::Server,
};
use crate::{
    cpu::{self, HurryingSession},
    float::to_f64,
    stats::Spread,
};

/// How often each known client comes before a flood if it is not trusted, and the time between two
/// visits: more than the two seconds that the configurations ask for, because the limiter's clock
/// is coarse.
const VISITS: u32 = 3;
const APART: Duration = Duration::from_millis(3_300);

/// The part of the machine's fastest pace that counts as "most": slower receivers slow it down a
/// little.
const OF_FASTEST: f64 = 0.8;

/// The largest difference of offered rates, in percent, at which results can be compared.
const COMPARABLE: f64 = 5.0;

/// The floods, defences and settings of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    pub(crate) floods: Vec<Flood>,
    pub(crate) defences: Vec<Defence>,
    pub(crate) rounds: usize,
    /// How long the clients ask.
    pub(crate) time: Duration,
    /// The limiter's program.
    pub(crate) limiter: Option<PathBuf>,
    /// Whether this is everything in the document of the service.
    pub(crate) is_whole: bool,
}

/// The results of all defences under one flood.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FloodResults {
    pub(crate) flood: Flood,
    /// Whether the offered rates were nearly the same.
    pub(crate) is_comparable: bool,
    pub(crate) outcomes: Vec<Outcome>,
}

/// The results of one defence under one flood.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) defence: &'static str,
    /// Percentages answered by the first, second and third try.
    pub(crate) known: [Spread; TRIES],
    pub(crate) new: [Spread; TRIES],
    /// The same for known clients with forged addresses, who are not in `known`; `None` if the
    /// flood forges none.
    pub(crate) victims: Option<[Spread; TRIES]>,
    /// Milliseconds from a known client's first try to its response.
    pub(crate) p50_ms: Spread,
    pub(crate) p99_ms: Spread,
    /// The percentage of new clients answered within 250 ms.
    pub(crate) new_promptly: Spread,
    /// Milliseconds from a new client's first try to its response.
    pub(crate) new_p50_ms: Spread,
    pub(crate) new_p99_ms: Spread,
    /// The percentage of its CPU that the server used.
    pub(crate) server_cpu: Spread,
    /// The percentage of the same CPU that receiving used.
    pub(crate) receiver_cpu: Spread,
    /// Nanoseconds of the receiving thread for each received packet.
    pub(crate) receiver_ns: Spread,
    /// Nanoseconds of the clients' receiving thread for each of the same packets: the cost of
    /// answers at their destination. `None` if the defence's program sends none.
    pub(crate) answers_ns: Option<Spread>,
    /// Packets per second that the flood made.
    pub(crate) offered: Spread,
    /// The percentage of the offered packets that was lost in the ring, before the defence.
    pub(crate) lost_in_ring: Spread,
    /// The percentage that was lost in CPUs' backlogs, behind the defence.
    pub(crate) lost_in_backlog: Spread,
    /// The percentage that was lost in the server's full sockets.
    pub(crate) lost_in_sockets: Spread,
    /// Every run, in order.
    pub(crate) runs: Vec<Run>,
}

/// The results of one run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Run {
    known: Tally,
    new: Tally,
    victims: Tally,
    server_cpu: f64,
    receiver_cpu: f64,
    receiver_ns: f64,
    answers_ns: Option<f64>,
    offered: f64,
    lost_in_ring: f64,
    lost_in_backlog: f64,
    lost_in_sockets: f64,
    /// How many bots completed a handshake.
    handshakes: usize,
    /// Where packets were lost.
    way: Way,
    /// The turns of the receiving thread.
    receiver_turns: Turns,
    server_turns: Turns,
    /// The percentage of time in which the host ran another guest on the clients' CPU.
    clients_cpu_stolen: f64,
    /// The same for the server's CPU.
    server_cpu_stolen: f64,
    /// The longest delay of a question after it was due, in milliseconds.
    asked_late_ms: f64,
    /// The automatic rates from the flood's beginning on.
    rates: Vec<RateSample>,
}

impl Measurement {
    /// Returns the defences against a flood.
    fn against(&self, flood: &Flood) -> Vec<Defence> {
        let defences = self.defences.iter().copied();
        defences
            .filter(|defence| defence.applies_to(flood))
            .collect()
    }

    /// Returns the number of runs.
    pub(crate) fn runs(&self) -> usize {
        let defences = self.floods.iter().map(|flood| self.against(flood).len());
        defences.sum::<usize>() * self.rounds
    }

    /// Measures the defences in turns, under one flood after the other.
    pub(crate) fn measure(
        &self,
        interrupt: &Interrupt,
        mut progress: impl FnMut(&str),
    ) -> Result<Vec<FloodResults>> {
        if self.runs() == 0 {
            return Ok(Vec::new());
        }
        let _held = hold()?;
        self.floods
            .iter()
            .map(|flood| {
                self.under(flood, interrupt, &mut progress)
                    .with_context(|| flood.name)
            })
            .collect()
    }

    fn under(
        &self,
        flood: &Flood,
        interrupt: &Interrupt,
        progress: &mut impl FnMut(&str),
    ) -> Result<FloodResults> {
        let per_second = match flood.rate {
            Rate::Most => Some(most(flood, interrupt)?),
            Rate::None | Rate::PerSecond(_) => None,
        };
        let defences = self.against(flood);
        let mut runs: Vec<Vec<Run>> = defences.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.rounds {
            for (defence, runs) in defences.iter().zip(&mut runs) {
                progress(&format!("{}: {}", flood.name, defence.name));
                let run = self
                    .run(flood, defence, per_second, interrupt)
                    .with_context(|| defence.name)?;
                runs.push(run);
            }
        }
        let outcomes = defences
            .iter()
            .zip(runs)
            .map(|(defence, runs)| Outcome::new(defence.name, runs))
            .collect::<Result<Vec<_>>>()?;
        let offered = outcomes.iter().map(|outcome| outcome.offered.median);
        Ok(FloodResults {
            flood: *flood,
            is_comparable: are_comparable(&offered.collect::<Vec<_>>()),
            outcomes,
        })
    }

    fn run(
        &self,
        flood: &Flood,
        defence: &Defence,
        per_second: Option<u64>,
        interrupt: &Interrupt,
    ) -> Result<Run> {
        let planned = working_day(self.time);
        let site = Site::new(flood, defence, &planned, self.limiter.as_deref(), interrupt)?;
        site.run(flood, &planned, per_second, interrupt)
    }
}

/// Keeps the machine ready for measurements until both values are dropped; fails if it is too
/// small.
fn hold() -> Result<(Option<HurryingSession>, CpuSpinner)> {
    setup::check()?;
    let hurry = HurryingSession::of(process::id())?;
    Ok((hurry, CpuSpinner::on(setup::SERVER_CPU)?))
}

/// A server behind its defence. All of it is removed on drop.
struct Site {
    // In the order of removal.
    at_work: ActiveDefence,
    server: Server,
    receiver: i32,
    /// The thread that receives packets sent back by the defence's program, if any.
    answers: Option<i32>,
    /// How long a flood lasts before the measurement.
    lead: Duration,
    pair: Pair,
}

impl Site {
    fn new(
        flood: &Flood,
        defence: &Defence,
        planned: &[PlannedQuestion],
        limiter: Option<&Path>,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let pair = setup::new_pair()?;
        let server = Server::start(defence.server(flood.service), &pair, interrupt)?;
        let at_work = defence.start(&pair, flood, planned, limiter)?;
        let answers = at_work.sends_back();
        let answers = answers.then(|| setup::receive_answers_on_thread(&pair));
        Ok(Self {
            at_work,
            server,
            receiver: setup::receive_on_thread(&pair)?,
            answers: answers.transpose()?,
            lead: defence.lead(),
            pair,
        })
    }

    fn run(
        mut self,
        flood: &Flood,
        planned: &[PlannedQuestion],
        per_second: Option<u64>,
        interrupt: &Interrupt,
    ) -> Result<Run> {
        let client = &self.pair.client;
        let count = if flood.by_visits { VISITS } else { 1 };
        let calm = ask(&visits(count, APART), flood, client, interrupt)?;
        ensure_served(&calm, flood)?;
        if flood.by_visits {
            wait(SENIOR, interrupt)?;
        }
        let handshakes = if let Some(ahead) = flood.handshakes {
            let completed = shake_hands(Group::Bots, BOTS, flood, client, interrupt)?;
            wait(ahead, interrupt)?;
            completed
        } else {
            0
        };
        let forger = match flood.rate {
            Rate::None => None,
            Rate::PerSecond(_) | Rate::Most => Some(Forger::start(flood, &self.pair, per_second)?),
        };
        let follower = self.at_work.automatic().map(Follower::start);
        wait(self.lead, interrupt)?;
        let sent = forger.as_ref().map(Forger::sent).transpose()?;
        let (before, start) = (self.counters()?, Instant::now());
        let questions = ask(planned, flood, client, interrupt)?;
        let (after, time) = (self.counters()?, start.elapsed());
        let sent = match (&forger, sent) {
            (Some(forger), Some(before)) => Some(forger.sent()?.since(&before)),
            _ => None,
        };
        forger.map(Forger::stop).transpose()?;
        let rates = follower.map(Follower::finish).transpose()?;
        self.at_work.check()?;
        let counted = after.since(&before);
        let way = counted.way;
        let frames = sent.map_or(way.received + way.ring_lost(), |sent| sent.frames);
        let lost = |packets| to_f64(packets) * 100.0 / to_f64(frames.max(1));
        let of_time = |used: Duration| used.as_secs_f64() * 100.0 / time.as_secs_f64();
        Ok(Run {
            known: questions.tally(is_known(flood)),
            new: questions.tally(|group, _| group == Group::New),
            victims: questions.tally(|group, member| flood.forges(group, member)),
            server_cpu: of_time(counted.server),
            receiver_cpu: of_time(counted.receiver),
            receiver_ns: counted.receiver_turns.ran_for_each(way.received),
            answers_ns: self
                .answers
                .map(|_| counted.answers_turns.ran_for_each(way.received)),
            offered: sent.map_or(0.0, |sent| sent.rate()),
            lost_in_ring: lost(way.ring_lost()),
            lost_in_backlog: lost(way.backlog_lost()),
            lost_in_sockets: lost(way.sockets_lost),
            handshakes,
            way,
            receiver_turns: counted.receiver_turns,
            server_turns: counted.server_turns,
            clients_cpu_stolen: counted.clients_cpu.stolen(),
            server_cpu_stolen: counted.server_cpu.stolen(),
            asked_late_ms: questions.latest().as_secs_f64() * 1e3,
            rates: rates.unwrap_or_default(),
        })
    }

    /// Reads the counters while the flood is paused: it would leave the reader little of its CPU.
    fn counters(&self) -> Result<Counters> {
        let (server, receiver, answers) = (self.server.group(), self.receiver, self.answers);
        let read = || {
            cpu::come_first(0)?;
            Counters::read(&self.pair, server, receiver, answers)
        };
        let read = thread::scope(|scope| scope.spawn(read).join());
        read.map_err(|_| anyhow!("the thread that reads counters panicked"))?
    }
}

/// Returns a test for known clients without forged addresses.
fn is_known(flood: &Flood) -> impl Fn(Group, u32) -> bool {
    move |group, member| group == Group::Known && !flood.forges(group, member)
}

/// Waits for this time, unless the user interrupts the program.
fn wait(time: Duration, interrupt: &Interrupt) -> Result<()> {
    const STEP: Duration = Duration::from_millis(100);
    let start = Instant::now();
    while start.elapsed() < time {
        interrupt.check()?;
        thread::sleep(STEP);
    }
    Ok(())
}

/// Fails if the known clients did not get most of their responses before the flood. Clients with
/// forged addresses do not count, because the ideal passes none of them.
fn ensure_served(calm: &Questions, flood: &Flood) -> Result<()> {
    const LEAST: f64 = 90.0;
    let answered = calm.tally(is_known(flood)).answered_by(TRIES);
    ensure!(
        answered >= LEAST,
        "only {answered:.1} % of the questions were answered before the flood"
    );
    Ok(())
}

/// Returns the pace of a flood at the machine's fastest, in front of the ideal.
fn most(flood: &Flood, interrupt: &Interrupt) -> Result<u64> {
    const TIME: Duration = Duration::from_secs(1);
    let ideal = DEFENCES.into_iter().find(|defence| defence.name == IDEAL);
    let ideal = ideal.context("no ideal")?;
    let site = Site::new(flood, &ideal, &[], None, interrupt)?;
    let forger = Forger::start(flood, &site.pair, None)?;
    wait(site.lead, interrupt)?;
    let before = forger.sent()?;
    wait(TIME, interrupt)?;
    let sent = forger.sent()?.since(&before);
    forger.stop()?;
    ensure!(sent.frames > 0, "the flood sent nothing");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of some millions"
    )]
    Ok((sent.rate() * OF_FASTEST) as u64)
}

/// Returns whether rates differ so little that results under them can be compared.
fn are_comparable(rates: &[f64]) -> bool {
    let Some(spread) = Spread::new(rates.to_vec()) else {
        return false;
    };
    spread.percent() <= COMPARABLE
}

impl Outcome {
    fn new(defence: &'static str, runs: Vec<Run>) -> Result<Self> {
        let spread = |of: &dyn Fn(&Run) -> f64| {
            Spread::new(runs.iter().map(of).collect()).context("no rounds")
        };
        let tries = |of: fn(&Run) -> &Tally| {
            let by = |attempt: usize| spread(&|run| of(run).answered_by(attempt));
            anyhow::Ok([by(1)?, by(2)?, by(3)?])
        };
        let answers_ns: Option<Vec<_>> = runs.iter().map(|run| run.answers_ns).collect();
        let has_victims = runs.iter().any(|run| run.victims.asked > 0);
        Ok(Self {
            defence,
            known: tries(|run| &run.known)?,
            new: tries(|run| &run.new)?,
            victims: has_victims.then(|| tries(|run| &run.victims)).transpose()?,
            p50_ms: spread(&|run| run.known.p50_ms)?,
            p99_ms: spread(&|run| run.known.p99_ms)?,
            new_promptly: spread(&|run| run.new.promptly())?,
            new_p50_ms: spread(&|run| run.new.p50_ms)?,
            new_p99_ms: spread(&|run| run.new.p99_ms)?,
            server_cpu: spread(&|run| run.server_cpu)?,
            receiver_cpu: spread(&|run| run.receiver_cpu)?,
            receiver_ns: spread(&|run| run.receiver_ns)?,
            answers_ns: answers_ns.and_then(Spread::new),
            offered: spread(&|run| run.offered)?,
            lost_in_ring: spread(&|run| run.lost_in_ring)?,
            lost_in_backlog: spread(&|run| run.lost_in_backlog)?,
            lost_in_sockets: spread(&|run| run.lost_in_sockets)?,
            runs,
        })
    }
}

impl Outcome {
    /// Returns whether the offered rates differ so little that the results can be compared.
    pub(crate) fn is_comparable(&self, other: &Self) -> bool {
        are_comparable(&[self.offered.median, other.offered.median])
    }
}

impl FloodResults {
    pub(crate) fn of(&self, defence: &str) -> Option<&Outcome> {
        let mut outcomes = self.outcomes.iter();
        outcomes.find(|outcome| outcome.defence == defence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_what_differs_by_five_percent_at_most() {
        assert!(are_comparable(&[100.0, 102.0, 104.9]));
        assert!(!are_comparable(&[100.0, 100.0, 106.0]));
        assert!(are_comparable(&[0.0, 0.0]));
        assert!(!are_comparable(&[]));
    }
}
