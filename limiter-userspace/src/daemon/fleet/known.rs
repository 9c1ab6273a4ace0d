//! A node's knowledge of the fleet's bans, and the part that the store lacks.

use std::{
    collections::{HashMap, HashSet},
    mem,
};

use limiter_fleet::{
    Name,
    bans::{BanId, BanMap, BanState, BanUpdate, Merged, Stamp},
};

/// How far the end of one ban may differ between nodes, in milliseconds.
const SAME_END_MS: u64 = 2_000;

/// A ban that was active here before the node read the store.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    /// When it was made, in milliseconds since 1970.
    pub(super) since_ms: u64,
    /// The state to send about it.
    pub(super) state: BanState,
}

/// The outcome of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It must be enforced.
    Due,
    /// It is already enforced, since before the node read the store.
    InForce,
    /// A later update is known, which the store may lack.
    Older,
    /// It changes nothing.
    Nothing,
    /// It is over, and useless to all nodes.
    Over,
    /// The map is full.
    Full,
}

pub(super) struct Known {
    node: Name,
    pub(super) map: BanMap,
    /// The active bans of this host that no update has confirmed yet.
    pub(super) seeds: HashMap<BanId, Seed>,
    /// The bans with an update that must be sent to the store.
    pub(super) unsent: HashSet<BanId>,
    /// The bans with a last update that the store may lack.
    pub(super) doubted: HashSet<BanId>,
}

impl Known {
    pub(super) fn new(node: Name) -> Self {
        Self {
            map: BanMap::new(node.clone()),
            node,
            seeds: HashMap::new(),
            unsent: HashSet::new(),
            doubted: HashSet::new(),
        }
    }

    /// Records a change made here, at a time in milliseconds since 1970. Returns whether there is room.
    pub(super) fn record(&mut self, id: BanId, state: BanState, ends_ms: u64, now_ms: u64) -> bool {
        self.seeds.remove(&id);
        let is_recorded = self.map.record(id.clone(), state, ends_ms, now_ms) == Merged::New;
        if is_recorded {
            self.unsent.insert(id);
        }
        is_recorded
    }

    /// Takes a checked update, at a time in milliseconds since 1970.
    pub(super) fn take(&mut self, update: BanUpdate, now_ms: u64) -> Taken {
        let id = update.id.clone();
        let ends_ms = update.state.ends_ms();
        let sent_ms = update.stamp.ms;
        match self.map.merge(update, now_ms) {
            Merged::Known => Taken::Nothing,
            Merged::Over => Taken::Over,
            Merged::Older => Taken::Older,
            Merged::Full => Taken::Full,
            Merged::New => {
                // The update is the last one, and its sender has stored it.
                self.unsent.remove(&id);
                let Some(seed) = self.seeds.remove(&id) else {
                    return Taken::Due;
                };
                if ends_ms.abs_diff(seed.state.ends_ms()) <= SAME_END_MS {
                    return Taken::InForce;
                }
                if sent_ms >= seed.since_ms {
                    return Taken::Due;
                }
                self.record_seed(id, seed);
                Taken::InForce
            }
        }
    }

    /// Claims all remaining seeds as bans of this node: the store has no update about them.
    pub(super) fn record_seeds(&mut self) {
        for (id, seed) in mem::take(&mut self.seeds) {
            self.record_seed(id, seed);
        }
    }

    fn record_seed(&mut self, id: BanId, seed: Seed) {
        let update = BanUpdate {
            stamp: Stamp {
                ms: seed.since_ms,
                node: self.node.clone(),
            },
            ends_ms: seed.state.ends_ms(),
            state: seed.state,
            id: id.clone(),
        };
        if self.map.merge(update, seed.since_ms) == Merged::New {
            self.unsent.insert(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn id() -> BanId {
        BanId {
            prefix: "192.0.2.1/32".parse().unwrap(),
            origin: "operator".into(),
        }
    }

    fn state(until_ms: u64) -> BanState {
        BanState::Banned {
            until_ms: Some(until_ms),
            reason: "".into(),
            limit: None,
        }
    }

    fn update(ms: u64, state: BanState) -> BanUpdate {
        BanUpdate {
            id: id(),
            stamp: Stamp {
                ms,
                node: "b".try_into().unwrap(),
            },
            ends_ms: state.ends_ms().max(NOW + 9_000),
            state,
        }
    }

    /// Returns the outcome of an update about a ban that is active here since NOW, and whether there is
    /// something to send.
    fn after(update: BanUpdate) -> (Taken, bool) {
        let mut known = Known::new("a".try_into().unwrap());
        let seed = Seed {
            since_ms: NOW,
            state: state(NOW + 9_000),
        };
        known.seeds.insert(id(), seed);
        let taken = known.take(update, NOW);
        known.record_seeds();
        (taken, !known.unsent.is_empty())
    }

    #[test]
    fn bans_from_before_the_fleet_was_read() {
        // The update is about the same ban.
        assert_eq!(
            after(update(NOW - 5, state(NOW + 8_000))),
            (Taken::InForce, false)
        );
        // The update has another end or lifts the ban, and is later or earlier.
        assert_eq!(
            after(update(NOW + 5, state(NOW + 1_000))),
            (Taken::Due, false)
        );
        assert_eq!(
            after(update(NOW + 5, BanState::Lifted)),
            (Taken::Due, false)
        );
        assert_eq!(
            after(update(NOW - 5, BanState::Lifted)),
            (Taken::InForce, true)
        );
    }

    #[test]
    fn what_was_done_here_is_sent_unless_others_sent_more() {
        let mut known = Known::new("a".try_into().unwrap());
        assert!(known.record(id(), state(NOW + 9_000), 0, NOW));
        assert_eq!(
            known.take(update(NOW - 1, BanState::Lifted), NOW),
            Taken::Older
        );
        assert_eq!(known.unsent.len(), 1);
        assert_eq!(
            known.take(update(NOW + 1, BanState::Lifted), NOW),
            Taken::Due
        );
        assert_eq!(
            known.take(update(NOW + 1, BanState::Lifted), NOW),
            Taken::Nothing
        );
        assert!(known.unsent.is_empty());
        known.record_seeds();
        assert!(known.unsent.is_empty());
    }
}
