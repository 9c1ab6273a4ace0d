//! A running count of the bans of other nodes. Walking over all bans every few seconds would take more CPU
//! than everything else a quiet node does.

use std::collections::{BTreeMap, HashMap};

use super::update::{BanId, BanState, Stamp};
use crate::Name;

/// The bans of other nodes by origin, with the number that end in each second.
#[derive(Debug)]
pub(super) struct Tally {
    own: Name,
    origins: HashMap<Box<str>, BTreeMap<u64, u64>>,
}

impl Tally {
    /// Returns an empty tally, which ignores updates of the node `own`.
    pub(super) fn new(own: Name) -> Self {
        Self {
            own,
            origins: HashMap::new(),
        }
    }

    pub(super) const fn own(&self) -> &Name {
        &self.own
    }

    /// Counts an update that has become the last of its ban.
    pub(super) fn add(&mut self, id: &BanId, stamp: &Stamp, state: &BanState) {
        let Some(second) = self.second(stamp, state) else {
            return;
        };
        let ends = match self.origins.get_mut(&id.origin) {
            Some(ends) => ends,
            None => self.origins.entry(id.origin.clone()).or_default(),
        };
        *ends.entry(second).or_default() += 1;
    }

    /// Stops counting an update.
    pub(super) fn remove(&mut self, id: &BanId, stamp: &Stamp, state: &BanState) {
        let Some(second) = self.second(stamp, state) else {
            return;
        };
        let Some(ends) = self.origins.get_mut(&id.origin) else {
            return;
        };
        if let Some(count) = ends.get_mut(&second) {
            *count -= 1;
            if *count == 0 {
                ends.remove(&second);
            }
        }
        if ends.is_empty() {
            self.origins.remove(&id.origin);
        }
    }

    /// Returns the number of active bans by origin, without the bans in `but`. A ban counts to the end of
    /// its last second. The time is in milliseconds since 1970.
    pub(super) fn holding<'e>(
        &self,
        now_ms: u64,
        but: impl Iterator<Item = (&'e BanId, &'e Stamp, &'e BanState)>,
    ) -> BTreeMap<String, u64> {
        let now = now_ms / 1_000;
        let counts = self.origins.iter().map(|(origin, ends)| {
            let holding = ends.range(now + 1..).map(|(_, count)| count);
            (origin.to_string(), holding.sum::<u64>())
        });
        let mut counts: BTreeMap<_, _> = counts.collect();
        for (id, stamp, state) in but {
            if self.second(stamp, state).is_some_and(|second| second > now)
                && let Some(count) = counts.get_mut(&*id.origin)
            {
                *count -= 1;
            }
        }
        counts.retain(|_, count| *count > 0);
        counts
    }

    /// Returns the end of a ban in seconds since 1970, rounded up; `None`: the ban does not count.
    fn second(&self, stamp: &Stamp, state: &BanState) -> Option<u64> {
        let ends_ms = state.ends_ms();
        (ends_ms > 0 && stamp.node != self.own).then(|| ends_ms.div_ceil(1_000))
    }
}
