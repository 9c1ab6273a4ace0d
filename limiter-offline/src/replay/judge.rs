//! Judges a captured packet, and reports the strictest limit's state.

use std::cmp::Reverse;

use limiter_capture::Packet;
use limiter_common::{
    address::Address,
    answer::Answer,
    classified_packet::ClassifiedPacket,
    cookie::{CookieKeys, Secret},
    decide::{Account, Verdict, account},
    dns::{self, Message},
    key::BucketKey,
    limit::LimitId,
    packet::{self, Facts, Frame as _},
    policy::{LimitEntry, classify, interval_in_force, with_overrides},
    reason::{Action, Reason},
    sieve::SieveTraffic,
    strategy::{Parameters, Report},
};
use limiter_policy::policy::{CompiledPolicy, DomainLabels, Policy, QuestionNames};
use limiter_protocol::sieves::SieveListStatus;
use limiter_reputation::sieve_lists::lists;
use thiserror::Error;

use super::{
    bans::{AutomaticBans, ReplayedBans},
    connections::ConnectionCounts,
    engine::{Engine, EngineError},
    follower::Follower,
    handshakes::HandshakeCounts,
    pressure::{PressureSummary, Pressures},
};

/// The first packet's time by the engine's clock, in nanoseconds. It is a year after the clock's start, so that
/// later packets may have earlier times, and early enough that every limit works for more years.
const FIRST: u64 = 1 << 55;

/// The last time that every limit can count, in nanoseconds of the engine's clock.
const LAST: u64 = 1 << 58;

/// The shortest frame that the kernel runs a program on, in bytes: an Ethernet header.
const SHORTEST: usize = 14;

/// A packet's time is outside the range that buckets can count.
#[derive(Debug, Error)]
#[error("packet {0} is more than a year before or eight years after the first one")]
pub struct TimeRangeError(u64);

/// A packet could not be judged.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// Its time is out of range.
    #[error(transparent)]
    Time(#[from] TimeRangeError),
    /// The engine failed.
    #[error("packet {0}: {1}")]
    Engine(u64, #[source] Box<EngineError>),
}

/// The state of the strictest matching limit after a packet.
#[derive(Clone, Copy, Debug)]
pub struct StrictestLimit {
    /// The limit's index in the policy.
    pub limit_index: u32,
    /// The bucket.
    pub key: BucketKey,
    /// The bucket's level after the decision.
    pub report: Report,
}

impl StrictestLimit {
    /// Orders as Boulder does: denied before allowed, then the longer wait, then fewer tokens left,
    /// then the lower id, which is the lower index.
    fn strictness(&self, action: Action) -> impl Ord + use<> {
        let Report {
            remaining,
            retry_in_ns,
            ..
        } = self.report;
        let denied = matches!(action, Action::Drop) && retry_in_ns != Some(0);
        // `None` means never, which is longer than any wait.
        let retry_in = (retry_in_ns.is_none(), retry_in_ns);
        (
            denied,
            retry_in,
            Reverse(remaining),
            Reverse(self.limit_index),
        )
    }
}

/// The bucket of a limit after a packet that the limit counts.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The limit's index in the policy.
    pub limit_index: u32,
    /// The whole tokens left.
    pub remaining: u64,
    /// The tokens of a full bucket.
    pub when_full: u64,
}

/// A packet and its verdict.
#[derive(Clone, Copy, Debug)]
pub struct ReplayedPacket {
    /// Its number, from 1.
    pub number: u64,
    /// Nanoseconds since the first packet.
    pub t_ns: i64,
    /// Its length on the wire.
    pub length: u64,
    /// Whether it is truncated in the capture.
    pub cut: bool,
    /// The reason for its verdict, and the limits that count it.
    pub verdict: Verdict,
    /// Whether it passes or is dropped.
    pub action: Action,
    /// Its source, if it is a valid IP packet.
    pub source: Option<Address>,
    /// The strictest enforcing limit that counts it. For packets that pass, only on request; never for packets
    /// that a list blocks.
    pub strictest: Option<StrictestLimit>,
}

/// Runs packets through a policy and an engine.
pub struct Replay {
    policy: CompiledPolicy,
    bans: Option<AutomaticBans>,
    engine: Box<dyn Engine>,
    /// The secrets of DNS cookies.
    secrets: Vec<Secret>,
    /// Whether to report the strictest limit also for packets that pass.
    report_passed: bool,
    pressures: Pressures,
    follower: Follower,
    /// The latest time by the engine's clock, in nanoseconds.
    latest_ns: u64,
    first_ns: Option<i128>,
    number: u64,
    /// The last packet, as limits see it; `None`: no limit sees it.
    last: Option<ClassifiedPacket>,
    suffixes: DomainLabels,
}

/// A sieve at the end of a replay.
#[derive(Clone, Debug)]
pub struct SieveReplay {
    /// Its name.
    pub name: String,
    /// Its uses, each with its counters.
    pub uses: Vec<(PressureSummary, SieveTraffic)>,
    /// Its lists, from list 0 to the entry list.
    pub lists: Vec<SieveListStatus>,
}

impl Replay {
    /// Replays through an engine that has loaded `tables`, compiled from `policy`. The engine must record
    /// offenders if a limit bans.
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
            follower: Follower::default(),
            latest_ns: 0,
            engine,
            secrets: Vec::new(),
            report_passed,
            first_ns: None,
            number: 0,
            last: None,
            suffixes: DomainLabels::new(&policy.public_suffixes),
        }
    }

    /// Checks DNS cookies with these secrets, at the capture's times.
    #[must_use]
    pub fn with_secrets(mut self, secrets: &[Secret]) -> Self {
        self.secrets = secrets.to_vec();
        self
    }

    /// Decides on the next packet.
    pub fn judge(&mut self, packet: &Packet<'_>) -> Result<ReplayedPacket, ReplayError> {
        self.number += 1;
        let number = self.number;
        let first_ns = *self.first_ns.get_or_insert(packet.time_ns);
        let (t_ns, now) = engine_time(packet.time_ns - first_ns).ok_or(TimeRangeError(number))?;
        let frame = packet.frame;
        let engine_error = |error: EngineError| ReplayError::Engine(number, Box::new(error));

        if number == 1 && !self.secrets.is_empty() {
            let keys = CookieKeys::new(&self.secrets, unix_ahead_ns(first_ns));
            self.engine.set_cookie_keys(keys).map_err(engine_error)?;
        }
        if let Some(bans) = &mut self.bans {
            bans.advance(&mut *self.engine, &self.policy, now)
                .map_err(engine_error)?;
        }
        self.latest_ns = self.latest_ns.max(now);
        self.pressures
            .until(now, &mut *self.engine)
            .map_err(engine_error)?;
        let mut facts = Facts::NONE;
        let parsed = packet::parse(&frame, &mut facts);
        self.follower
            .prepare(&mut *self.engine, &self.policy, &facts)
            .map_err(engine_error)?;
        let verdict = match parsed {
            // The engines would disagree here: the kernel runs no shorter frame, and would read zeros if the
            // capture ends inside a header.
            Err(reason) if frame.length() < SHORTEST || frame.is_cut() => {
                Verdict::without_limits(reason)
            }
            _ => self
                .engine
                .decide(&self.policy, now, &frame)
                .map_err(engine_error)?,
        };
        if let Some(bans) = &mut self.bans
            && verdict.refused_by().is_some()
        {
            bans.dropped();
        }
        let action = verdict.action(&self.policy);
        self.follower
            .follow(
                &mut *self.engine,
                &self.policy,
                (&frame, &facts),
                action == Action::Pass,
                now,
            )
            .map_err(engine_error)?;
        // No limit charges a source that a list excludes or blocks.
        let is_counted = !verdict.reason.is_of_list();
        let class = classify(&self.policy, &facts.source).filter(|_| is_counted);
        self.last = class.map(|class| {
            let name_match = dns::match_frame(&self.policy, &frame, facts.datagram);
            ClassifiedPacket {
                facts,
                class: *class,
                now,
                interface: 0,
                name_match: with_overrides(&self.policy, &facts.source, class, &name_match),
            }
        });
        let strictest = match &self.last {
            Some(packet) if self.report_passed || action == Action::Drop => self
                .strictest(packet, &verdict, action)
                .map_err(engine_error)?,
            _ => None,
        };
        Ok(ReplayedPacket {
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

    /// Returns the frame that answers `packet`, the last one, with the verdict of `replayed`; `None`: there is no answer.
    #[must_use]
    pub fn answer(&self, packet: &Packet<'_>, replayed: &ReplayedPacket) -> Option<Vec<u8>> {
        let is_answered = replayed.verdict.answer() != Answer::Drop;
        is_answered.then(|| self.engine.answer(&packet.frame))
    }

    /// Returns the texts of the last packet's DNS question; `None`: it has none, or no limit has buckets of
    /// questions or domains.
    #[must_use]
    pub fn question(&self, packet: &Packet<'_>) -> Option<QuestionNames> {
        let features = &self.policy.features;
        let datagram = self.last.as_ref()?.facts.datagram;
        let mut message = Message::EMPTY;
        if features.by_question | features.by_domain == 0 || !message.read(&packet.frame, datagram)
        {
            return None;
        }
        Some(QuestionNames::new(message.question()?, &self.suffixes))
    }

    /// Makes the bans due after the last packets. Returns all bans; `None`: no limit bans.
    ///
    /// # Errors
    ///
    /// Fails if the engine does.
    pub fn finish(&mut self) -> Result<Option<ReplayedBans<'_>>, EngineError> {
        if let Some(bans) = &mut self.bans {
            bans.decide(&mut *self.engine, &self.policy)?;
            bans.count_all(&*self.engine)?;
        }
        Ok(self.bans.as_ref().map(AutomaticBans::made))
    }

    /// Returns the number of connections; `None`: no limit counts connections.
    #[must_use]
    pub const fn connections(&self) -> Option<ConnectionCounts> {
        if self.policy.features.connections == 0 {
            None
        } else {
            Some(self.follower.connections())
        }
    }

    /// Returns the number of completed handshakes; all are zero if the policy does not need them.
    #[must_use]
    pub const fn handshakes(&self) -> HandshakeCounts {
        self.follower.handshakes()
    }

    /// Returns how many DNS cookies proved their sources; `None`: the policy does not check cookies.
    ///
    /// # Errors
    ///
    /// Fails if the engine does.
    pub fn valid_cookies(&self) -> Result<Option<u64>, EngineError> {
        let are_looked_for = self.policy.features.cookie_port != 0;
        let valid = are_looked_for.then(|| self.engine.valid_cookies());
        valid.transpose()
    }

    /// Returns the state of the policy's sieves that are on.
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

    /// Finds the strictest limit that counts the packet, by its bucket after the decision.
    ///
    /// Observing limits are left out, as Boulder's spend-only transactions do not contribute to a batch's
    /// decision.
    fn strictest(
        &self,
        packet: &ClassifiedPacket,
        verdict: &Verdict,
        action: Action,
    ) -> Result<Option<StrictestLimit>, EngineError> {
        let mut strictest: Option<StrictestLimit> = None;
        let counting = match verdict.refused_by() {
            // The bucket has tokens, but they are reserved from this source.
            Some(limit_index) if verdict.reason == Reason::Reserved => 1 << limit_index,
            _ => verdict.matched & !self.policy.features.observing,
        };
        for limit_index in limit_indices(counting) {
            let Some((key, parameters, cost)) = self.charged(packet, limit_index) else {
                continue;
            };
            let this = StrictestLimit {
                limit_index,
                key,
                report: self.report(packet, limit_index, (&key, &parameters, cost))?,
            };
            if strictest.is_none_or(|other| this.strictness(action) > other.strictness(action)) {
                strictest = Some(this);
            }
        }
        Ok(strictest)
    }

    /// Returns the buckets of all limits that count the last packet, with the verdict of `replayed`.
    pub fn levels(
        &self,
        replayed: &ReplayedPacket,
    ) -> impl Iterator<Item = Result<Level, EngineError>> {
        let packet = self.last.as_ref();
        limit_indices(replayed.verdict.matched).filter_map(move |limit_index| {
            let packet = packet?;
            let (key, parameters, cost) = self.charged(packet, limit_index)?;
            let report = self.report(packet, limit_index, (&key, &parameters, cost));
            Some(report.map(|report| Level {
                limit_index,
                remaining: report.remaining,
                when_full: parameters.when_full(),
            }))
        })
    }

    /// Returns the packet's bucket at a limit, with the parameters in force, and the packet's cost.
    fn charged(
        &self,
        packet: &ClassifiedPacket,
        limit_index: u32,
    ) -> Option<(BucketKey, Parameters, u64)> {
        let Account {
            key,
            parameters,
            cost,
        } = account(&self.policy, packet, limit_index)?;
        let mut parameters = *parameters;
        if self.policy.features.is_automatic(limit_index) {
            let interval =
                interval_in_force(&self.policy, limit_index, &parameters.gcra, packet.now);
            parameters = parameters.at_interval(interval);
        }
        Some((key, parameters, cost))
    }

    /// Reports a bucket's state after a packet of this cost; for a limit on connections, how many more may be
    /// opened.
    fn report(
        &self,
        packet: &ClassifiedPacket,
        limit_index: u32,
        (key, parameters, cost): (&BucketKey, &Parameters, u64),
    ) -> Result<Report, EngineError> {
        if self.policy.features.connections >> limit_index & 1 != 0 {
            let counted_as = self.policy.limits.get(limit_index as usize);
            let counted_as = counted_as.map_or(LimitId(key.limit), LimitEntry::counted_with);
            let open = self.engine.open_connections(&key.of_limit(counted_as))?;
            let remaining = parameters.connections().saturating_sub(open);
            return Ok(Report {
                remaining,
                // The end of the next connection cannot be foreseen.
                retry_in_ns: (remaining > 0).then_some(0),
                reset_in_ns: 0,
            });
        }
        let state = self.engine.bucket(key)?;
        let log = parameters.log(|number| {
            let stamp = self.engine.bucket(&key.of_part(number));
            stamp.map(Option::unwrap_or_default)
        })?;
        Ok(parameters.report(packet.now, state, &log, cost))
    }
}

/// Returns the indices of the limits in a set of limits.
pub fn limit_indices(mut limits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let limit_index = (limits != 0).then(|| limits.trailing_zeros());
        limits &= limits.wrapping_sub(1);
        limit_index
    })
}

/// Converts nanoseconds since the first packet to the engine's time; `None`: outside the range that every limit
/// can count.
fn engine_time(t_ns: i128) -> Option<(i64, u64)> {
    let t_ns = i64::try_from(t_ns).ok()?;
    let now = FIRST.checked_add_signed(t_ns)?;
    (now <= LAST).then_some((t_ns, now))
}

/// Returns Unix time minus the engine's clock, in nanoseconds modulo 2^64, given the first packet's Unix time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "modulo 2^64"
)]
const fn unix_ahead_ns(first_ns: i128) -> u64 {
    (first_ns - FIRST as i128) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boulders_order() {
        let limit = |limit_index, remaining, retry_in_ns| StrictestLimit {
            limit_index,
            key: BucketKey::NONE,
            report: Report {
                remaining,
                retry_in_ns,
                reset_in_ns: 0,
            },
        };
        let check = |action, stricter: &StrictestLimit, other: &StrictestLimit| {
            let (stricter, other) = (stricter.strictness(action), other.strictness(action));
            assert!(stricter > other);
        };
        // The longer wait wins even if the packet passes, regardless of the tokens left.
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
