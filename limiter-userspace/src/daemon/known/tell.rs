//! Puts records of sources in the words of answers.

use std::{net::IpAddr, time::Duration};

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use limiter_common::standing::{Kind, Moment, Record, SourceId, Standing, Tick};
use limiter_datapath::kernel::wall_clock_now;

use super::sources::prefix_of;
use crate::protocol::known::{KnownBy, ShortageStatus, SourceStatus};

/// One moment by both clocks.
#[derive(Clone, Copy)]
pub(super) struct Teller<'d> {
    pub(super) at: Moment<'d>,
    now: Timestamp,
}

impl<'d> Teller<'d> {
    pub(super) fn new(at: Moment<'d>) -> Self {
        Self {
            at,
            now: wall_clock_now(),
        }
    }

    /// Describes a source that no list proves.
    pub(super) fn tell(&self, source: SourceId, record: Record) -> SourceStatus {
        let standing = record.standing(&self.at);
        let by = match record.kind() {
            _ if record.rank(&self.at) == 0 => None,
            Kind::Nothing => None,
            Kind::Visited | Kind::Familiar => Some(KnownBy::Visits),
            // Its retry is over, and its visits count.
            Kind::Retried if standing == Standing::Unknown => Some(KnownBy::Visits),
            Kind::Retried => Some(KnownBy::Retry),
            Kind::Proven => Some(KnownBy::Handshake),
            Kind::Vouched => Some(KnownBy::Operator),
        };
        let since_ns = by.and_then(|by| self.since_ns(by, record));
        let ends_in_ns = match by {
            Some(KnownBy::Retry | KnownBy::Operator) => Some(self.ends_in_ns(record)),
            _ => None,
        };
        let last_visit_ns = by.map(|_| nanoseconds(self.at.now.since_kept(record.last())));
        SourceStatus {
            source: prefix_of(self.at.settings, source),
            standing,
            by,
            list: None,
            since: since_ns.map(|ns| self.ago(ns)),
            since_ns,
            until: ends_in_ns.and_then(|ns| self.now.checked_add(signed(ns)).ok()),
            ends_in_ns,
            last_visit: last_visit_ns.map(|ns| self.ago(ns)),
            last_visit_ns,
            visits: by.map_or(0, |_| record.visits()),
        }
    }

    /// Describes the shortage, if there is one.
    pub(super) fn shortage(&self) -> Option<ShortageStatus> {
        let shortage = self.at.shortage;
        self.at.is_short().then(|| {
            let lasts_ns = nanoseconds(self.at.now.since(shortage.began()));
            ShortageStatus {
                since: self.ago(lasts_ns),
                lasts_ns,
            }
        })
    }

    /// Returns for how many ticks a record has had its standing; of one that somebody vouches for,
    /// since its last visit.
    pub(super) fn age(&self, record: Record) -> u32 {
        let now = self.at.now;
        match record.kind() {
            Kind::Nothing | Kind::Vouched => now.since_kept(record.last()),
            Kind::Retried => {
                let gained = record.since().wrapping_sub(Record::RETRIED);
                now.since_kept(Tick(gained).kept())
            }
            Kind::Visited | Kind::Familiar | Kind::Proven => now.since_kept(record.since()),
        }
    }

    /// Returns how long ago a standing was gained; `None`: nobody knows.
    fn since_ns(&self, by: KnownBy, record: Record) -> Option<u64> {
        let is_known = by != KnownBy::Operator;
        is_known.then(|| nanoseconds(self.age(record)))
    }

    fn ends_in_ns(&self, record: Record) -> u64 {
        let left = record.since().wrapping_sub(self.at.now.kept());
        nanoseconds(Tick(left).kept())
    }

    fn ago(&self, ns: u64) -> Timestamp {
        self.now.saturating_sub(signed(ns)).unwrap_or(self.now)
    }
}

const fn nanoseconds(ticks: u32) -> u64 {
    (ticks as u64) << Tick::BITS
}

fn signed(ns: u64) -> SignedDuration {
    SignedDuration::try_from(Duration::from_nanos(ns)).unwrap_or(SignedDuration::MAX)
}

/// Describes a source that a list proves.
pub(super) fn listed(list: String, told: SourceStatus, address: IpAddr) -> SourceStatus {
    SourceStatus {
        source: IpNet::from(address),
        standing: Standing::Proven,
        by: Some(KnownBy::List),
        list: Some(list),
        since: None,
        since_ns: None,
        until: None,
        ends_in_ns: None,
        ..told
    }
}

#[cfg(test)]
mod tests;
