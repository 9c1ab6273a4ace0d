//! Hand-computed cases, and random ones beside a naive model.

mod model;
mod proven;
mod ranges;
mod tables;

use std::{collections::BTreeMap, convert::Infallible, net::IpAddr};

use ipnet::IpNet;
use limiter_common::{
    ban::BanKey,
    limit::{BUILT_IN, LimitId},
    offender::{Dropper, Offender, OffenderKey},
};
use limiter_policy::policy::{AutomaticBan, BanMode, Escalation, Limit, Policy};

use super::{Decider, DueBans, Offence};

pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MS;

/// When the scenes begin.
const BEGIN_MS: u64 = 1_000_000;

/// Terms with a window of ten seconds, so that a poll comes every second.
pub(super) fn terms(after: u64, range_after: Option<u32>) -> AutomaticBan {
    AutomaticBan {
        after,
        within_ns: 10 * SECOND,
        for_ns: 60 * SECOND,
        at_most_ns: 600 * SECOND,
        escalate: Escalation::NONE,
        range_after,
        site_after: range_after,
        only: None,
        mode: BanMode::Enforce,
    }
}

/// A policy in which the first limits ban.
pub(super) fn policy(bans: &[AutomaticBan]) -> Policy {
    let limits = BUILT_IN.iter().zip(bans);
    let limits = limits.map(|(built_in, ban)| Limit {
        ban: Some(*ban),
        ..Limit::of_built_in(built_in, None)
    });
    limits.collect::<Vec<_>>().into()
}

/// The kernel's records, and a decider that polls them. Times are in milliseconds from the beginning.
pub(super) struct Scene {
    pub(super) decider: Decider,
    recorded: BTreeMap<(u16, IpAddr), Offender>,
}

impl Scene {
    pub(super) fn new(bans: &[AutomaticBan]) -> Self {
        let mut decider = Decider::default();
        decider.adopt(&policy(bans), ns(0));
        Self {
            decider,
            recorded: BTreeMap::new(),
        }
    }

    /// Records drops by a limit of packets of an address.
    pub(super) fn drops(&mut self, at_ms: u64, limit: u16, address: &str, drops: u64) {
        let address = address.parse().unwrap();
        let entry = self.recorded.entry((limit, address));
        let offender = entry.or_insert(Offender {
            drops: 0,
            first_drop_ns: ns(at_ms),
            last_drop_ns: ns(at_ms),
        });
        offender.drops += drops;
        offender.last_drop_ns = ns(at_ms);
    }

    /// The kernel forgets an address.
    pub(super) fn forget(&mut self, limit: u16, address: &str) {
        self.recorded.remove(&(limit, address.parse().unwrap()));
    }

    /// Records drops from before the decider began.
    pub(super) fn recorded_before(&mut self, limit: u16, address: &str, drops: u64) {
        let offender = Offender {
            drops,
            first_drop_ns: ns(0) - 1,
            last_drop_ns: ns(0) - 1,
        };
        let address = address.parse().unwrap();
        self.recorded.insert((limit, address), offender);
    }

    /// Returns the kernel's records.
    pub(super) fn recorded(&self) -> Vec<(OffenderKey, Offender)> {
        let recorded = self.recorded.iter();
        let recorded = recorded.map(|((limit, address), offender)| {
            let key = OffenderKey::new(LimitId(*limit), Dropper::Budget, &(*address).into());
            (key, *offender)
        });
        recorded.collect()
    }

    pub(super) fn decide(&mut self, at_ms: u64) -> DueBans {
        self.decide_by(at_ms, |_| false)
    }

    /// Polls the offenders, some of them proven.
    pub(super) fn decide_by(&mut self, at_ms: u64, is_proven: impl Fn(&BanKey) -> bool) -> DueBans {
        let recorded = self.recorded();
        let is_proven = |prefix: &BanKey| Ok::<_, Infallible>(is_proven(prefix));
        let Ok(due) = self.decider.decide(ns(at_ms), recorded, is_proven);
        due
    }

    /// Polls these offenders.
    pub(super) fn decide_at(
        &mut self,
        at_ms: u64,
        recorded: impl IntoIterator<Item = (OffenderKey, Offender)>,
    ) -> DueBans {
        let nobody = |_: &BanKey| Ok::<_, Infallible>(false);
        let Ok(due) = self.decider.decide(ns(at_ms), recorded, nobody);
        due
    }

    /// Polls, and bans all offenders for a minute; returns the limit, the prefix, the drops and the members of each.
    pub(super) fn bans(&mut self, at_ms: u64) -> Vec<(u16, String, u64, u64)> {
        let due = self.decide(at_ms);
        assert!(due.delayed.is_empty());
        for offence in &due.offences {
            self.decider.banned(offence, ns(at_ms + 60_000));
        }
        due.offences.iter().map(fields).collect()
    }

    #[track_caller]
    pub(super) fn check(&mut self, at_ms: u64, expected: &[(u16, &str, u64, u64)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(limit, prefix, drops, members)| (*limit, (*prefix).to_owned(), *drops, *members))
            .collect();
        assert_eq!(self.bans(at_ms), expected, "at {at_ms} ms");
    }
}

pub(super) const fn ns(at_ms: u64) -> u64 {
    (BEGIN_MS + at_ms) * MS
}

pub(super) fn shown(prefix: &BanKey) -> String {
    let length = u8::try_from(prefix.prefix_length()).unwrap();
    let prefix = IpNet::new(prefix.address().into(), length).unwrap();
    if prefix.prefix_len() == prefix.max_prefix_len() {
        prefix.addr().to_string()
    } else {
        prefix.to_string()
    }
}

pub(super) fn fields(offence: &Offence) -> (u16, String, u64, u64) {
    let prefix = shown(&offence.prefix());
    (offence.limit().0, prefix, offence.drops, offence.members)
}
