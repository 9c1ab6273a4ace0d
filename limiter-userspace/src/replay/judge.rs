//! From a captured packet to its verdict, and what the strictest limit tells of it.

use std::{
    cmp::Reverse,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use ipnet::IpNet;
use limiter_common::{
    address::{Address, Family},
    bucket::BucketKey,
    gcra::Report,
    limit::LimitId,
    packet::{self, Facts, Frame as _},
    policy::{Tables as _, classify, parameters},
    reason::{Action, Reason},
};
use thiserror::Error;

use super::{
    capture::Packet,
    engine::{Engine, EngineError},
};
use crate::policy::CompiledPolicy;

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
    /// Why it passes or is dropped.
    pub reason: Reason,
    /// Its source, when it is a good IP packet.
    pub source: Option<Address>,
    /// The slots of the limits that count it, as bits.
    pub matched: u64,
    /// The strictest of them; of packets that pass only where it was asked for.
    pub strictest: Option<Strictest>,
}

/// A policy and an engine, and the packets through them.
pub struct Replay {
    policy: CompiledPolicy,
    engine: Box<dyn Engine>,
    /// Whether the strictest limit is wanted of packets that pass too.
    report_passed: bool,
    first_ns: Option<i128>,
    number: u64,
}

impl Replay {
    /// Replays through an engine that has loaded this policy.
    #[must_use]
    pub fn new(policy: CompiledPolicy, engine: Box<dyn Engine>, report_passed: bool) -> Self {
        Self {
            policy,
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

        let mut facts = Facts::NONE;
        let parsed = packet::parse(&frame, &mut facts);
        let reason = match parsed {
            // What the engines would disagree on is decided here: the kernel runs nothing
            // shorter, and would find zeros where the capture ends inside a header.
            Err(reason) if frame.length() < SHORTEST || frame.is_cut() => reason,
            _ => self
                .engine
                .decide(&self.policy, now, &frame)
                .map_err(engine_error)?,
        };
        let mut judged = Judged {
            number,
            t_ns,
            length: frame.length() as u64,
            cut: frame.is_cut(),
            reason,
            source: parsed.is_ok().then_some(facts.source),
            matched: 0,
            strictest: None,
        };
        if parsed.is_ok() {
            self.ask_limits(&facts, now, &mut judged)
                .map_err(engine_error)?;
        }
        Ok(judged)
    }

    /// Asks every limit that counts the packet for its bucket after the decision.
    fn ask_limits(&self, facts: &Facts, now: u64, judged: &mut Judged) -> Result<(), EngineError> {
        let action = judged.reason.action();
        let wanted = self.report_passed || action == Action::Drop;
        let class = classify(&self.policy, facts.source);
        for slot in 0..self.policy.limit_count() {
            let Some(limit) = self.policy.limit(slot) else {
                continue;
            };
            let (Some(prefix_length), Some(cost), Some(gcra)) = (
                limit.prefix_length(facts.source.family),
                limit.cost_of(facts),
                parameters(&self.policy, limit, class, slot),
            ) else {
                continue;
            };
            judged.matched |= 1 << slot;
            if !wanted {
                continue;
            }
            let key = BucketKey::new(LimitId(limit.id), facts.source, prefix_length);
            let tat = self.engine.bucket(&key)?;
            let this = Strictest {
                slot,
                key,
                report: gcra.report(gcra.ticks(now), tat, cost),
            };
            if judged
                .strictest
                .is_none_or(|other| this.strictness(action) > other.strictness(action))
            {
                judged.strictest = Some(this);
            }
        }
        Ok(())
    }
}

/// The nanoseconds since the first packet, as far as every limit can count, and that as a time
/// of the engine.
fn engine_time(t_ns: i128) -> Option<(i64, u64)> {
    let t_ns = i64::try_from(t_ns).ok()?;
    let now = FIRST.checked_add_signed(t_ns)?;
    (now <= LAST).then_some((t_ns, now))
}

/// A bucket's id as configuration files have it: a single address without its prefix length.
#[must_use]
pub fn bucket_id(key: &BucketKey) -> String {
    let [high, low] = key.address;
    let address = if key.family == Family::V4 as u8 {
        Address::v4([high[0], high[1], high[2], high[3]])
    } else {
        Address::v6(high, low)
    };
    let address = ip_address(address);
    match IpNet::new(address, key.prefix_length) {
        Ok(range) if range.prefix_len() < range.max_prefix_len() => range.to_string(),
        _ => address.to_string(),
    }
}

/// An address as the standard library has it.
pub(super) fn ip_address(address: Address) -> IpAddr {
    match address.family {
        Family::V4 => {
            let [a, b, c, d, ..] = address.high.to_be_bytes();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        Family::V6 => {
            let bits = u128::from(address.high) << 64 | u128::from(address.low);
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_configuration_files() {
        let check = |address: &str, prefix_length, id: &str| {
            let address: IpAddr = address.parse().unwrap();
            let key = BucketKey::new(LimitId(1), address.into(), prefix_length);
            assert_eq!(bucket_id(&key), id);
        };
        check("192.0.2.77", 32, "192.0.2.77");
        check("192.0.2.77", 24, "192.0.2.0/24");
        check("2001:db8:1:2::3", 128, "2001:db8:1:2::3");
        check("2001:db8:1:2::3", 48, "2001:db8:1::/48");
    }

    #[test]
    fn boulders_order() {
        let limit = |slot, remaining, retry_in_ns| Strictest {
            slot,
            key: BucketKey::new(LimitId(1), Address::v4([0; 4]), 32),
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
