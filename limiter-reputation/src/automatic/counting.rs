//! Counts the drops of offenders, from one poll to the next.

use std::{collections::HashMap, mem};

use limiter_common::offender::{Dropper, Offender, OffenderKey};

use super::{
    Decider, Subject, alone,
    ranges::{network_of, site_of},
    slice_ns,
    window::Window,
};

impl Decider {
    /// Adds the offenders' drops since the last poll.
    pub(super) fn add(
        &mut self,
        now_ns: u64,
        offenders: impl IntoIterator<Item = (OffenderKey, Offender)>,
    ) {
        let before_ns = mem::replace(&mut self.polled_ns, now_ns);
        let gap_ns = now_ns.saturating_sub(before_ns);
        let read_ns = mem::replace(&mut self.read_ns, now_ns);
        self.ignored.retain(|_, until_ns| *until_ns > read_ns);
        self.ungrouped.retain(|_, until_ns| *until_ns > now_ns);
        let offenders = self.merged(offenders);
        // A forgotten offender starts again, and is kept here no longer than in the records.
        self.sources.retain(|key, _| offenders.contains_key(key));
        for (key, offender) in offenders {
            let Some(terms) = self.terms.get(&key.limit) else {
                continue;
            };
            let drops = match self.sources.get(&key) {
                // Fewer than before: one of several interfaces' records was forgotten.
                Some(source)
                    if source.first_drop_ns == offender.first_drop_ns
                        || offender.first_drop_ns < read_ns =>
                {
                    offender.drops.saturating_sub(source.drops)
                }
                // The drops are older than the decider.
                None if offender.first_drop_ns < read_ns => 0,
                _ => offender.drops,
            };
            let source = self.sources.entry(key).or_default();
            source.first_drop_ns = offender.first_drop_ns;
            source.drops = offender.drops;
            let ignored_until_ns = ignored_until(&self.ignored, &key);
            if ignored_until_ns.is_some() {
                source.window = Window::default();
            }
            if ignored_until_ns.is_none_or(|until_ns| until_ns <= before_ns) {
                let windows = gap_ns.div_ceil(terms.within_ns).max(1);
                source.window.add(now_ns / slice_ns(terms), drops / windows);
            }
        }
    }

    /// Returns the offenders of limits that ban, each once.
    fn merged(
        &self,
        offenders: impl IntoIterator<Item = (OffenderKey, Offender)>,
    ) -> HashMap<OffenderKey, Offender> {
        let mut merged = HashMap::<_, Offender>::new();
        for (key, offender) in offenders {
            // A source that a sieve drops is busy at a bad time, but has used up no budget.
            let is_by_budget = key.dropper() == Dropper::Budget;
            if is_by_budget && self.terms.contains_key(&key.limit) {
                let all = merged.entry(key);
                all.and_modify(|all| {
                    all.drops += offender.drops;
                    all.first_drop_ns = all.first_drop_ns.min(offender.first_drop_ns);
                })
                .or_insert(offender);
            }
        }
        merged
    }
}

/// Returns until when the drops of an offender, or of a range that contains it, do not count.
fn ignored_until(ignored: &HashMap<Subject, u64>, key: &OffenderKey) -> Option<u64> {
    if ignored.is_empty() {
        return None;
    }
    let address = key.address();
    let prefixes = [
        Some(alone(key)),
        network_of(key.limit, &address),
        site_of(key.limit, &address),
    ];
    let until_ns = |prefix| ignored.get(&prefix).copied();
    prefixes.into_iter().flatten().filter_map(until_ns).max()
}
