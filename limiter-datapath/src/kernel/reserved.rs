//! The standing of an address under the policy in force, and the limits' reserves and answers for it.

use std::net::IpAddr;

use limiter_common::{
    address::Address,
    answer::Answer,
    decide::reserve_of,
    policy::{Class, classify},
    standing::{Kind, Record, Shortage, SourceId, Standing, StandingContext, Tick},
};

use super::{Datapath, DatapathError, LimitBucket, monotonic_now};

/// The number for no standing, one above the numbers of all standings.
const NOT_CHECKED: u32 = Standing::Unknown as u32 + 1;

/// The standing of a source, with its reasons.
#[derive(Clone, Copy, Debug)]
pub struct SourceStanding {
    /// The source.
    pub source: SourceId,
    /// The standing.
    pub standing: Standing,
    /// Whether a list of proven sources contains it; its record then does not matter.
    pub is_listed: bool,
    /// The valid part of its record; [`Record::NONE`]: the source is unknown.
    pub record: Record,
    /// The latest shortage.
    pub shortage: Shortage,
    /// The time of this standing.
    pub now: Tick,
    /// Nanoseconds until the standing ends; `None`: it lasts for as long as the source keeps coming.
    pub ends_in_ns: Option<u64>,
}

/// The reserve that a limit keeps from a source, and the time until a packet passes in spite of it.
#[derive(Clone, Copy, Debug)]
pub struct ReservedLevel {
    /// The tokens that a packet must leave in the bucket.
    pub tokens: u64,
    /// Nanoseconds until a packet of one token passes; 0: it passes now.
    pub retry_in_ns: u64,
}

impl SourceStanding {
    /// The standing of a source that no list proves.
    #[must_use]
    pub const fn of_record(source: SourceId, record: Record, at: &StandingContext<'_>) -> Self {
        let record = record.current(at);
        Self {
            source,
            standing: record.standing(at),
            is_listed: false,
            record,
            shortage: at.shortage,
            now: at.now,
            ends_in_ns: ends_in(record, at),
        }
    }

    /// The nanoseconds since a tick in the record.
    #[must_use]
    pub const fn ns_since(&self, kept: u32) -> u64 {
        (self.now.since_kept(kept) as u64) << Tick::BITS
    }
}

/// The nanoseconds until a record ends even if its source keeps coming; `None`: it does not end.
const fn ends_in(record: Record, at: &StandingContext<'_>) -> Option<u64> {
    match record.kind() {
        Kind::Nothing | Kind::Visited | Kind::Familiar | Kind::Proven => None,
        Kind::Retried | Kind::Trusted => {
            let left = record.since().wrapping_sub(at.now.kept());
            Some((Tick(left).kept() as u64) << Tick::BITS)
        }
        Kind::Reported => {
            let unseen_ns = (at.now.since_kept(record.last()) as u64) << Tick::BITS;
            Some(at.settings.remember_ns.saturating_sub(unseen_ns))
        }
    }
}

impl Datapath {
    /// The standing of an address; `None`: the policy in force uses no standing.
    pub fn standing_of(&self, address: IpAddr) -> Result<Option<SourceStanding>, DatapathError> {
        let known = match self.known_sources() {
            Ok(known) => known,
            Err(DatapathError::NoStanding) => return Ok(None),
            Err(error) => return Err(error),
        };
        let at = known.standing_context()?;
        let source = known.source(address);
        let by_record = SourceStanding::of_record(source, known.record(source), &at);
        let class = classify(&self.policy, &Address::from(address));
        Ok(Some(if class.is_some_and(Class::is_proven) {
            SourceStanding {
                standing: Standing::Proven,
                is_listed: true,
                ..by_record
            }
        } else {
            by_record
        }))
    }

    /// Whether the limit of a bucket counts packets of sources of a standing.
    #[must_use]
    pub const fn counts(&self, limit_bucket: &LimitBucket, standing: Standing) -> bool {
        let counting = self.policy.features.of_standing(standing);
        counting & (1 << (limit_bucket.limit_index & 63)) != 0
    }

    /// The answer of a bucket's limit to a refused packet from a source of a standing; `None`: no limit asks
    /// for the standing.
    #[must_use]
    pub fn answer_to(&self, limit_bucket: &LimitBucket, standing: Option<Standing>) -> Answer {
        let number = standing.map_or(NOT_CHECKED, |standing| standing as u32);
        let limit = self.policy.limits.get(limit_bucket.limit_index as usize);
        limit.map_or(Answer::Drop, |limit| limit.answer_to(number))
    }

    /// The reserve that the limit of the bucket keeps from sources of a standing; `None`: the limit has no
    /// reserve.
    pub fn reserved(
        &self,
        limit_bucket: &LimitBucket,
        standing: Standing,
    ) -> Result<Option<ReservedLevel>, DatapathError> {
        let LimitBucket {
            limit_index,
            interface,
            key,
            rate_index,
            parameters,
            share,
            ..
        } = limit_bucket;
        let is_in = |limits| limits & (1 << (limit_index & 63)) != 0;
        if !is_in(self.policy.features.reserving_anything()) {
            return Ok(None);
        }
        let reserve = reserve_of(&self.policy, *limit_index, *rate_index, standing);
        if let Some(open) = self.open_connections(key)? {
            let has_room = open.saturating_add(reserve) < parameters.connections();
            return Ok(Some(ReservedLevel {
                tokens: reserve,
                retry_in_ns: if has_room { 0 } else { u64::MAX },
            }));
        }
        let now_ns = monotonic_now();
        let state = self.state_of_bucket(*interface, key, parameters.unit, now_ns)?;
        let gcra = &parameters.gcra;
        if let Some(share) = *share {
            let now = gcra.ticks(now_ns);
            return Ok(Some(ReservedLevel {
                tokens: gcra.tokens(reserve, share),
                retry_in_ns: gcra.wait_leaving_of_share(now, state, reserve, share),
            }));
        }
        Ok(Some(ReservedLevel {
            // The reserve is a whole number of emission intervals.
            tokens: reserve / parameters.gcra.emission_interval.max(1),
            retry_in_ns: parameters.wait_leaving(now_ns, state, reserve),
        }))
    }
}
