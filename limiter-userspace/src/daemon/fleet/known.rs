//! A node's knowledge of the fleet's bans, and the part that the store has yet to hear.

use std::{
    collections::{HashMap, HashSet},
    mem,
};

use limiter_fleet::{
    Name,
    bans::{BanId, BanMap, BanNote, Merged, Said, Stamp},
};

/// By how much the end of one ban may differ from node to node, in milliseconds.
const SAME_END_MS: u64 = 2_000;

/// A ban that was in force here before the fleet was heard.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    /// When it was made, in milliseconds since 1970.
    pub(super) since_ms: u64,
    /// The word about it.
    pub(super) said: Said,
}

/// The fate of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is to be put in force.
    Due,
    /// It is in force, as it was before the fleet was heard.
    InForce,
    /// A later word is known, which the store may lack.
    Older,
    /// It changes nothing.
    Nothing,
    /// It is over, and nobody needs to know of it.
    Over,
    /// There is no room for it.
    Full,
}

/// A node's knowledge.
pub(super) struct Known {
    node: Name,
    pub(super) map: BanMap,
    /// The bans in force here of which nothing was heard yet.
    pub(super) seeds: HashMap<BanId, Seed>,
    /// The bans of which the store has yet to hear.
    pub(super) unsent: HashSet<BanId>,
    /// The bans of which the store may lack the last word.
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

    /// Notes what was done here, at a time in milliseconds since 1970. Returns whether there is room.
    pub(super) fn say(&mut self, id: BanId, said: Said, ends_ms: u64, now_ms: u64) -> bool {
        self.seeds.remove(&id);
        let is_said = self.map.say(id.clone(), said, ends_ms, now_ms) == Merged::New;
        if is_said {
            self.unsent.insert(id);
        }
        is_said
    }

    /// Takes a note that was heard and checked, at a time in milliseconds since 1970.
    pub(super) fn take(&mut self, note: BanNote, now_ms: u64) -> Taken {
        let id = note.id.clone();
        let ends_ms = note.said.ends_ms();
        let said_ms = note.stamp.ms;
        match self.map.merge(note, now_ms) {
            Merged::Known => Taken::Nothing,
            Merged::Over => Taken::Over,
            Merged::Older => Taken::Older,
            Merged::Full => Taken::Full,
            Merged::New => {
                // It is the last word, and whoever says it has told the store.
                self.unsent.remove(&id);
                let Some(seed) = self.seeds.remove(&id) else {
                    return Taken::Due;
                };
                if ends_ms.abs_diff(seed.said.ends_ms()) <= SAME_END_MS {
                    return Taken::InForce;
                }
                if said_ms >= seed.since_ms {
                    return Taken::Due;
                }
                self.say_seed(id, seed);
                Taken::InForce
            }
        }
    }

    /// Says of all bans that were in force here before the fleet was heard, and of which it has not
    /// heard, that they were made here.
    pub(super) fn say_seeds(&mut self) {
        for (id, seed) in mem::take(&mut self.seeds) {
            self.say_seed(id, seed);
        }
    }

    fn say_seed(&mut self, id: BanId, seed: Seed) {
        let note = BanNote {
            stamp: Stamp {
                ms: seed.since_ms,
                node: self.node.clone(),
            },
            ends_ms: seed.said.ends_ms(),
            said: seed.said,
            id: id.clone(),
        };
        if self.map.merge(note, seed.since_ms) == Merged::New {
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

    fn said(until_ms: u64) -> Said {
        Said::Banned {
            until_ms: Some(until_ms),
            reason: "".into(),
            limit: None,
        }
    }

    fn note(ms: u64, said: Said) -> BanNote {
        BanNote {
            id: id(),
            stamp: Stamp {
                ms,
                node: "b".try_into().unwrap(),
            },
            ends_ms: said.ends_ms().max(NOW + 9_000),
            said,
        }
    }

    /// Returns what becomes of a note where a ban was in force that was made at NOW, and whether
    /// something is to be sent.
    fn after(note: BanNote) -> (Taken, bool) {
        let mut known = Known::new("a".try_into().unwrap());
        let seed = Seed {
            since_ms: NOW,
            said: said(NOW + 9_000),
        };
        known.seeds.insert(id(), seed);
        let taken = known.take(note, NOW);
        known.say_seeds();
        (taken, !known.unsent.is_empty())
    }

    #[test]
    fn bans_from_before_the_fleet_was_heard() {
        // The same ban.
        assert_eq!(
            after(note(NOW - 5, said(NOW + 8_000))),
            (Taken::InForce, false)
        );
        // Another, or its end, said later or earlier.
        assert_eq!(after(note(NOW + 5, said(NOW + 1_000))), (Taken::Due, false));
        assert_eq!(after(note(NOW + 5, Said::Lifted)), (Taken::Due, false));
        assert_eq!(after(note(NOW - 5, Said::Lifted)), (Taken::InForce, true));
    }

    #[test]
    fn what_was_done_here_is_sent_unless_others_said_more() {
        let mut known = Known::new("a".try_into().unwrap());
        assert!(known.say(id(), said(NOW + 9_000), 0, NOW));
        assert_eq!(known.take(note(NOW - 1, Said::Lifted), NOW), Taken::Older);
        assert_eq!(known.unsent.len(), 1);
        assert_eq!(known.take(note(NOW + 1, Said::Lifted), NOW), Taken::Due);
        assert_eq!(known.take(note(NOW + 1, Said::Lifted), NOW), Taken::Nothing);
        assert!(known.unsent.is_empty());
        known.say_seeds();
        assert!(known.unsent.is_empty());
    }
}
