//! From a captured packet to its verdict, and what the strictest limit tells of it.

use std::cmp::Reverse;

use limiter_common::{
    address::Address,
    charge::{self, Account, account},
    decide::Verdict,
    owner::BucketKey,
    packet::{self, Facts, Frame as _},
    policy::classify,
    reason::{Action, Reason},
    sieve::SieveTraffic,
    strategy::Report,
};
use limiter_policy::policy::{CompiledPolicy, Policy};
use thiserror::Error;

use super::{
    bans::{AutomaticBans, ReplayedBans},
    capture::Packet,
    engine::{Engine, EngineError},
    pressure::{Pressures, UnderPressure},
};
use crate::{protocol::sieves::SieveListStatus, reputation::lists::lists};

/// The engine's time of the first packet: a year after its clock began, so that later packets
/// may be captured as earlier ones, and early enough that every limit counts for years more.
const FIRST: u64 = 1 << 55;

/// The last time that every limit can count, in nanoseconds of the engine's clock.
const LAST: u64 = 1 << 58;

/// The shortest frame that the kernel runs a program on: an Ethernet header.
const SHORTEST: usize = 14;

/// A packet's time is out of what buckets count.
#[derive(Debug, Error)]
#[error("packet {0} is more than a year before or eight years after the first one")]
pub struct OutOfTime(u64);

/// A packet could not be judged.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// Its time.
    #[error(transparent)]
    Time(#[from] OutOfTime),
    /// The engine.
    #[error("packet {0}: {1}")]
    Engine(u64, #[source] Box<EngineError>),
}

/// What the strictest of the matching limits tells of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Strictest {
    /// The limit's slot in the policy.
    pub slot: u32,
    /// The bucket.
    pub key: BucketKey,
    /// The bucket's level after the decision.
    pub report: Report,
}

impl Strictest {
    /// Boulder's order: denied before allowed, then the longer to wait, then fewer tokens
    /// left, then the lower id, which is the lower slot.
    fn strictness(&self, action: Action) -> impl Ord + use<> {
        let Report {
            remaining,
            retry_in_ns,
            ..
        } = self.report;
        let denied = matches!(action, Action::Drop) && retry_in_ns != Some(0);
        // Never is longer than any time.
        let retry_in = (retry_in_ns.is_none(), retry_in_ns);
        (denied, retry_in, Reverse(remaining), Reverse(self.slot))
    }
}

/// One packet, judged.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// Its number, from 1.
    pub number: u64,
    /// Nanoseconds since the first packet.
    pub t_ns: i64,
    /// Its length on the wire.
    pub length: u64,
    /// Whether the capture lacks its end.
    pub cut: bool,
    /// Why it passes or is dropped, and which limits count it.
    pub verdict: Verdict,
    /// What is done to it.
    pub action: Action,
    /// Its source, when it is a good IP packet.
    pub source: Option<Address>,
    /// The strictest of the limits that count it and do more than observe; of packets that
    /// pass only where it was asked for, and never of those that a list blocks.
    pub strictest: Option<Strictest>,
}

/// A policy and an engine, and the packets through them.
pub struct Replay {
    policy: CompiledPolicy,
    bans: Option<AutomaticBans>,
    engine: Box<dyn Engine>,
    /// Whether the strictest limit is wanted of packets that pass too.
    report_passed: bool,
    pressures: Pressures,
    /// The latest time of the engine's clock, in nanoseconds.
    latest_ns: u64,
    first_ns: Option<i128>,
    number: u64,
}

/// A sieve at the end of a replay.
#[derive(Clone, Debug)]
pub struct SieveReplay {
    /// Its name.
    pub name: String,
    /// Its uses, each with what was counted of it.
    pub uses: Vec<(UnderPressure, SieveTraffic)>,
    /// Its lists, from list 0 to the entry list.
    pub lists: Vec<SieveListStatus>,
}

impl Replay {
    /// Replays through an engine that has loaded this policy, of which these are the tables, and that
    /// records offenders where a limit bans them.
    #[must_use]
    pub fn new(
        policy: &Policy,
        tables: CompiledPolicy,
        engine: Box<dyn Engine>,
        report_passed: bool,
    ) -> Self {
        Self {
            policy: tables,
            bans: AutomaticBans::new(policy, FIRST),
            pressures: Pressures::new(policy),
            latest_ns: 0,
            engine,
            report_passed,
            first_ns: None,
            number: 0,
        }
    }

    /// Decides on the next packet.
    pub fn judge(&mut self, packet: &Packet<'_>) -> Result<Judged, ReplayError> {
        self.number += 1;
        let number = self.number;
        let first_ns = *self.first_ns.get_or_insert(packet.time_ns);
        let (t_ns, now) = engine_time(packet.time_ns - first_ns).ok_or(OutOfTime(number))?;
        let frame = packet.frame;
        let engine_error = |error: EngineError| ReplayError::Engine(number, Box::new(error));

        if let Some(bans) = &mut self.bans {
            bans.advance(&mut *self.engine, now).map_err(engine_error)?;
        }
        self.latest_ns = self.latest_ns.max(now);
        self.pressures
            .until(now, &mut *self.engine)
            .map_err(engine_error)?;
        let mut facts = Facts::NONE;
        let parsed = packet::parse(&frame, &mut facts);
        let verdict = match parsed {
            // What the engines would disagree on is decided here: the kernel runs nothing
            // shorter, and would find zeros where the capture ends inside a header.
            Err(reason) if frame.length() < SHORTEST || frame.is_cut() => {
                Verdict::without_limits(reason)
            }
            _ => self
                .engine
                .decide(&self.policy, now, &frame)
                .map_err(engine_error)?,
        };
        if let Some(bans) = &mut self.bans
            && verdict.denied_by().is_some()
        {
            bans.dropped();
        }
        let action = verdict.action(&self.policy);
        // Whom a list blocks no limit asks for tokens.
        let asked = verdict.reason != Reason::BlockedList;
        let strictest = if asked && (self.report_passed || action == Action::Drop) {
            classify(&self.policy, &facts.source)
                .map(|class| charge::Packet {
                    facts,
                    class: *class,
                    now,
                })
                .map(|packet| self.strictest(&packet, &verdict, action))
                .transpose()
                .map_err(engine_error)?
                .flatten()
        } else {
            None
        };
        Ok(Judged {
            number,
            t_ns,
            length: frame.length() as u64,
            cut: frame.is_cut(),
            verdict,
            action,
            source: parsed.is_ok().then_some(facts.source),
            strictest,
        })
    }

    /// Bans whom the last packets would have banned. Returns all bans; `None`: no limit bans anybody.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn finish(&mut self) -> Result<Option<ReplayedBans<'_>>, EngineError> {
        if let Some(bans) = &mut self.bans {
            bans.look(&mut *self.engine)?;
        }
        Ok(self.bans.as_ref().map(AutomaticBans::made))
    }

    /// What has become of the sieves of the policy that are on.
    pub fn sieves(&self, policy: &Policy) -> Result<Vec<SieveReplay>, EngineError> {
        let memory = self.engine.sieves();
        let all = policy.sieves.iter().zip(&self.policy.sieves).enumerate();
        let on = all.filter(|(_, (sieve, _))| sieve.is_on());
        let sieves = on.map(|(number, (sieve, compiled))| {
            let lasted = self.pressures.lasted().iter();
            let lasted = lasted.filter(|lasted| lasted.used.sieve == Some(number));
            let uses = lasted.map(|lasted| {
                let index = lasted.used.index().unwrap_or_default();
                Ok((*lasted, self.engine.sieve_traffic(index)?))
            });
            Ok(SieveReplay {
                name: sieve.name.clone(),
                uses: uses.collect::<Result<_, EngineError>>()?,
                lists: lists(sieve, compiled, &memory, self.latest_ns),
            })
        });
        sieves.collect()
    }

    /// Asks every limit that counts the packet for its bucket after the decision.
    ///
    /// Those that only observe are left out: Boulder's spend-only transactions do not
    /// contribute to a batch's decision either.
    fn strictest(
        &self,
        packet: &charge::Packet,
        verdict: &Verdict,
        action: Action,
    ) -> Result<Option<Strictest>, EngineError> {
        let mut strictest: Option<Strictest> = None;
        for slot in slots(verdict.matched & !self.policy.shape.observing) {
            let Some(Account { key, budget, cost }) = account(&self.policy, packet, slot) else {
                continue;
            };
            let state = self.engine.bucket(&key)?;
            let log = budget.log(|number| {
                let stamp = self.engine.bucket(&key.of_stamp(number));
                stamp.map(Option::unwrap_or_default)
            })?;
            let this = Strictest {
                slot,
                key,
                report: budget.report(packet.now, state, &log, cost),
            };
            if strictest.is_none_or(|other| this.strictness(action) > other.strictness(action)) {
                strictest = Some(this);
            }
        }
        Ok(strictest)
    }
}

/// The slots of a set of limits.
pub fn slots(mut limits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let slot = (limits != 0).then(|| limits.trailing_zeros());
        limits &= limits.wrapping_sub(1);
        slot
    })
}

/// The nanoseconds since the first packet, as far as every limit can count, and that as a time
/// of the engine.
fn engine_time(t_ns: i128) -> Option<(i64, u64)> {
    let t_ns = i64::try_from(t_ns).ok()?;
    let now = FIRST.checked_add_signed(t_ns)?;
    (now <= LAST).then_some((t_ns, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boulders_order() {
        let limit = |slot, remaining, retry_in_ns| Strictest {
            slot,
            key: BucketKey::NONE,
            report: Report {
                remaining,
                retry_in_ns,
                reset_in_ns: 0,
            },
        };
        let check = |action, stricter: &Strictest, other: &Strictest| {
            let (stricter, other) = (stricter.strictness(action), other.strictness(action));
            assert!(stricter > other);
        };
        // Of packets that pass, too, the one to wait for longer, with whatever left.
        check(Action::Pass, &limit(1, 5, Some(9)), &limit(0, 0, Some(8)));
        check(Action::Pass, &limit(1, 0, Some(0)), &limit(0, 1, Some(0)));
        check(Action::Pass, &limit(0, 1, Some(0)), &limit(1, 1, Some(0)));
        check(Action::Drop, &limit(1, 5, Some(1)), &limit(0, 0, Some(0)));
        check(
            Action::Drop,
            &limit(1, 5, None),
            &limit(0, 0, Some(u64::MAX)),
        );
    }

    #[test]
    fn times_are_bounded() {
        assert_eq!(engine_time(0), Some((0, FIRST)));
        assert_eq!(engine_time(-1), Some((-1, FIRST - 1)));
        assert_eq!(engine_time(-(1 << 55)), Some((-(1 << 55), 0)));
        assert_eq!(engine_time(-(1 << 55) - 1), None);
        assert_eq!(engine_time(i128::from(LAST - FIRST) + 1), None);
        assert_eq!(engine_time(1 << 80), None);
    }
}
