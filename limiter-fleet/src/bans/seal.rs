//! Seals of ban notes and heartbeats.
//!
//! Nodes must share only the fleet's name and key: they come and go without a list of members.

use sha2::{Digest as _, Sha256};

use super::{
    beat::{Beat, EarlierBeat},
    note::BanNote,
};
use crate::{
    Name,
    envelope::{Envelope, Keys, OpenError, SEAL, read, written},
};

/// The most notes about bans in a letter.
pub const MOST_BAN_NOTES: usize = 256;

/// The most bytes of a note: two prefixes' worth, the texts and the numbers, with room to spare.
const LONGEST_NOTE: usize = 512;

/// Seals and opens ban notes and heartbeats.
#[derive(Clone, Debug)]
pub struct BanSeal {
    bans: Envelope,
    beats: Envelope,
}

impl BanSeal {
    /// Returns the seal of the fleet with that name.
    #[must_use]
    pub fn new(fleet: &Name, keys: &Keys) -> Self {
        let envelope = |purpose, notes: usize| Envelope {
            keys: keys.clone(),
            purpose,
            alike: Sha256::digest(fleet.as_str()),
            most_bytes: 1 + SEAL + 2 + notes * LONGEST_NOTE,
        };
        Self {
            bans: envelope(b"limiter fleet, bans", MOST_BAN_NOTES),
            beats: envelope(b"limiter fleet, beats", 1),
        }
    }

    /// Writes a letter of at most [`MOST_BAN_NOTES`].
    #[must_use]
    pub fn letter(&self, notes: &[BanNote]) -> Vec<u8> {
        debug_assert!(notes.len() <= MOST_BAN_NOTES, "{}", notes.len());
        self.bans.close(&written(&notes))
    }

    /// Reads a letter. Its notes are not [checked](BanNote::check) yet.
    ///
    /// # Errors
    ///
    /// The letter is not from a node of the fleet.
    pub fn open(&self, letter: &[u8]) -> Result<Vec<BanNote>, OpenError> {
        let notes = read::<Vec<BanNote>>(self.bans.open(letter)?)?;
        if notes.len() > MOST_BAN_NOTES {
            return Err(OpenError::Notes);
        }
        Ok(notes)
    }

    /// Returns whether an [opened](Self::open) letter is sealed with the current key. A letter under the
    /// other key becomes unreadable once the nodes forget that key.
    #[must_use]
    pub fn is_current(&self, letter: &[u8]) -> bool {
        self.bans.is_current(letter)
    }

    /// Writes a heartbeat.
    #[must_use]
    pub fn beat(&self, beat: &Beat) -> Vec<u8> {
        self.beats.close(&written(beat))
    }

    /// Reads a heartbeat.
    ///
    /// # Errors
    ///
    /// The heartbeat is not from a node of the fleet.
    pub fn open_beat(&self, beat: &[u8]) -> Result<Beat, OpenError> {
        let body = self.beats.open(beat)?;
        let beat = read::<Beat>(body).or_else(|_| read::<EarlierBeat>(body).map(Beat::from))?;
        if beat.is_right() {
            Ok(beat)
        } else {
            Err(OpenError::Notes)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Key,
        bans::{
            beat::StreamPlace,
            note::{BanId, Said, Stamp},
        },
    };

    fn seal(fleet: &str, current: u8, other: Option<u8>) -> BanSeal {
        let key = |byte: u8| Key::new(&[byte; 32]).unwrap();
        let keys = Keys {
            current: key(current),
            other: other.map(key),
        };
        BanSeal::new(&fleet.try_into().unwrap(), &keys)
    }

    fn longest() -> BanNote {
        BanNote {
            id: BanId {
                prefix: "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128"
                    .parse()
                    .unwrap(),
                origin: "o".repeat(64).into(),
            },
            stamp: Stamp {
                ms: u64::MAX,
                node: "n".repeat(63).as_str().try_into().unwrap(),
            },
            said: Said::Banned {
                until_ms: Some(u64::MAX),
                reason: "r".repeat(88).into(),
                limit: Some("l".repeat(128).into()),
            },
            ends_ms: u64::MAX,
        }
    }

    #[test]
    fn a_letter_says_what_was_written() {
        let seal = seal("edge", 1, None);
        let notes = vec![longest(); MOST_BAN_NOTES];
        assert_eq!(seal.open(&seal.letter(&notes)), Ok(notes));
        let beat = Beat::new("a".try_into().unwrap(), "1.2.3", 7, 9);
        assert_eq!(seal.open_beat(&seal.beat(&beat)), Ok(beat.clone()));
        let place = StreamPlace { ms: 5, number: 6 };
        let more = beat
            .clone()
            .with_read(Some(place))
            .with_nodes(Some(u64::MAX));
        assert_eq!(seal.open_beat(&seal.beat(&more)), Ok(more));
        // An earlier version does not report the last message read.
        let earlier = written(&(&beat.node, &beat.version, beat.policy, beat.ms));
        assert_eq!(seal.open_beat(&seal.beats.close(&earlier)), Ok(beat));
    }

    #[test]
    fn only_nodes_of_the_fleet_are_heard() {
        let own = seal("edge", 1, Some(2));
        let notes = [longest()];
        for (fleet, key, is_heard) in [
            ("edge", 1, true),
            ("edge", 2, true),
            ("edge", 3, false),
            ("core", 1, false),
        ] {
            let heard = own.open(&seal(fleet, key, None).letter(&notes));
            assert_eq!(heard.is_ok(), is_heard, "{fleet} {key}");
        }
        for (key, other, is_current) in [(1, None, true), (1, Some(2), true), (2, Some(1), false)] {
            let letter = seal("edge", 1, None).letter(&notes);
            let now = seal("edge", key, other);
            assert_eq!(now.is_current(&letter), is_current, "{key} {other:?}");
        }
        // A heartbeat is no letter.
        let beat = Beat::new("a".try_into().unwrap(), "1", 7, 9);
        assert_eq!(own.open(&own.beat(&beat)), Err(OpenError::Seal));
        assert_eq!(own.open(&vec![1; 1_000_000]), Err(OpenError::TooLong));
    }

    proptest! {
        /// Any bytes that a key holder seals are notes or an error, never a panic.
        #[test]
        fn any_sealed_bytes_are_notes_or_none(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let seal = seal("edge", 1, None);
            if let Ok(notes) = seal.open(&seal.bans.close(&body)) {
                for note in notes {
                    let _ = note.check(0);
                }
            }
            let _ = seal.open_beat(&seal.beats.close(&body));
        }

        #[test]
        fn a_changed_letter_is_none(at in 1_usize..200, to: u8) {
            let seal = seal("edge", 1, None);
            let mut letter = seal.letter(&[longest()]);
            let at = at % letter.len();
            prop_assume!(at > 0 && letter[at] != to);
            letter[at] = to;
            prop_assert_eq!(seal.open(&letter), Err(OpenError::Seal));
        }
    }
}
