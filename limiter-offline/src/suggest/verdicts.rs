//! Judges each limit of a configuration, alone, by the captured packets.

use limiter_capture::Packet;
use limiter_common::packet::Facts;
use limiter_policy::policy::{Mode, Policy};
use serde::Serialize;

use super::{drops::ratio, frames::Sink, host::PacketDirection};
use crate::replay::{Replay, ReplayError, limit_indices};

/// A limit is too wide if no bucket was ever used more than this fraction.
const HARDLY_USED: f64 = 0.1;

/// A limit's fit to the captured packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// No packet matched it.
    Unmatched,
    /// It would drop a larger fraction of the packets than allowed.
    Tight,
    /// Its buckets hold at least ten times the highest use.
    Wide,
    /// Neither too tight nor too wide.
    Fits,
}

/// The effect of a limit alone.
#[derive(Clone, Debug, Serialize)]
pub struct LimitFit {
    /// The limit's name.
    pub limit: String,
    /// Its configured mode.
    pub mode: Mode,
    /// The packets that it counts.
    pub packets: u64,
    /// The packets that it would drop.
    pub would_drop: u64,
    /// Their fraction, from 0 to 1.
    pub fraction: f64,
    /// The largest used part of a full bucket, from 0 to 1; `None`: no bucket has tokens.
    pub used: Option<f64>,
    /// How well it fits.
    pub fit: Fit,
}

impl LimitFit {
    /// Judges a limit by its counters. `most_dropped`: the fraction of its packets that it may drop.
    #[must_use]
    pub fn new(
        limit: String,
        mode: Mode,
        packets: u64,
        would_drop: u64,
        used: Option<f64>,
        most_dropped: f64,
    ) -> Self {
        let fraction = match packets {
            0 => 0.0,
            packets => ratio(would_drop, packets),
        };
        let fit = if packets == 0 {
            Fit::Unmatched
        } else if fraction > most_dropped {
            Fit::Tight
        } else if used.is_some_and(|used| used < HARDLY_USED) {
            Fit::Wide
        } else {
            Fit::Fits
        };
        Self {
            limit,
            mode,
            packets,
            would_drop,
            fraction,
            used,
            fit,
        }
    }
}

/// Judges packets.
pub struct Verdicts {
    replay: Replay,
    limits: Vec<Tally>,
    /// How many packets were judged.
    packets: u64,
    /// How many packets at least one limit would drop.
    would_drop: u64,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    packets: u64,
    would_drop: u64,
    used: Option<f64>,
}

impl Verdicts {
    /// Judges by a replay of a policy made [`observing`].
    #[must_use]
    pub fn new(replay: Replay, policy: &Policy) -> Self {
        Self {
            replay,
            limits: vec![Tally::default(); policy.limits.len()],
            packets: 0,
            would_drop: 0,
        }
    }

    /// Returns how many packets were judged, and how many of them at least one limit would drop.
    #[must_use]
    pub const fn all(&self) -> (u64, u64) {
        (self.packets, self.would_drop)
    }

    /// Judges the limits of a policy. `most_dropped`: the fraction of its packets that each may drop.
    #[must_use]
    pub fn limit_fits(&self, policy: &Policy, most_dropped: f64) -> Vec<LimitFit> {
        let limits = policy.limits.iter().zip(&self.limits);
        let limit_fits = limits.map(|(limit, tally)| {
            let Tally {
                packets,
                would_drop,
                used,
            } = *tally;
            let name = limit.name.clone();
            LimitFit::new(name, limit.mode, packets, would_drop, used, most_dropped)
        });
        limit_fits.collect()
    }
}

impl Sink for Verdicts {
    type Error = ReplayError;

    fn observe(&mut self, _way: PacketDirection, _facts: &Facts) {}

    fn take(
        &mut self,
        way: PacketDirection,
        packet: &Packet<'_>,
        _facts: Option<&Facts>,
    ) -> Result<(), ReplayError> {
        if !way.incoming {
            return Ok(());
        }
        let replayed = self.replay.judge(packet)?;
        self.packets += 1;
        self.would_drop += u64::from(replayed.verdict.would_drop != 0);
        for limit_index in limit_indices(replayed.verdict.matched) {
            self.limits[limit_index as usize].packets += 1;
        }
        for limit_index in limit_indices(replayed.verdict.would_drop) {
            self.limits[limit_index as usize].would_drop += 1;
        }
        for level in self.replay.levels(&replayed) {
            let level =
                level.map_err(|error| ReplayError::Engine(replayed.number, Box::new(error)))?;
            if level.when_full > 0 {
                let used = 1.0 - ratio(level.remaining, level.when_full);
                let most = &mut self.limits[level.limit_index as usize].used;
                *most = Some(most.map_or(used, |most| most.max(used)));
            }
        }
        Ok(())
    }
}

/// Makes all limits of a policy observe, independently of each other: none drops packets before they reach
/// another limit, bans or answers, and none has a sieve. An automatic rate is replaced by its floor.
pub fn observing(policy: &mut Policy) {
    policy.sieves.clear();
    for limit in &mut policy.limits {
        if limit.mode == Mode::Enforce {
            limit.mode = Mode::Observe;
        }
        limit.ip_rep = None;
        limit.ban = None;
        limit.deny = None;
        limit.ceiling = None;
        limit.fleet_nodes = None;
    }
}
