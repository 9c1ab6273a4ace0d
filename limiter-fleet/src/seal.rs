//! Seals of letters: a node accepts letters of its own fleet only.
//!
//! A sealed letter is a byte with the version of the format, the seal, and the letter as postcard writes
//! it. The seal covers the letter and a digest of the configuration that all nodes must share. This
//! enforces the protocol's assumption that all nodes have the same members and terms: other nodes cannot
//! make themselves heard.

use sha2::{Digest as _, Sha256};

use crate::{
    Header, Letter, Members, Note, Renewal, Terms,
    envelope::{Envelope, Keys, OpenError, SEAL, read, written},
    letter::Written,
};

/// Text that no other use of the key begins with. The number changes with the format of letters.
const PURPOSE: &[u8] = b"limiter fleet, letters 3";

/// The most notes of a letter.
pub const MOST_NOTES: usize = 512;

/// The most bytes of a letter: longer ones are refused unread.
pub const MOST_BYTES: usize =
    1 + SEAL + HEADER + RENEWAL + 2 * LENGTH + MOST_NOTES * (LIMIT + LONGEST_NOTE);

/// The most bytes of a header: two numbers of 32 bits and two of 64. Postcard writes seven bits a byte.
const HEADER: usize = 2 * 5 + 2 * 10;

/// The most bytes of a renewal: two optional numbers of 64 bits.
const RENEWAL: usize = 2 * (1 + 10);

/// The most bytes of a length or a position, of 16 bits.
const LENGTH: usize = 3;

/// The bytes of a limit's name.
const LIMIT: usize = 16;

/// The most bytes of a note: the index of its limit, its owner, the kind of message, and four numbers of 64
/// bits.
const LONGEST_NOTE: usize = LENGTH + (5 + 1 + 16) + 1 + 4 * 10;

/// Seals and opens the letters of one fleet.
#[derive(Clone, Debug)]
pub struct Seal(Envelope);

impl Seal {
    /// Returns the seal of the fleet with that name.
    #[must_use]
    pub fn new(fleet: &str, members: &Members, terms: &Terms, keys: Keys) -> Self {
        let mut alike = Sha256::new();
        let texts = [fleet].into_iter().chain(members.alike());
        for text in texts {
            alike.update((text.len() as u64).to_be_bytes());
            alike.update(text);
        }
        for number in [terms.loan_ns, terms.drift_ppm, terms.patience_ns] {
            alike.update(number.to_be_bytes());
        }
        Self(Envelope {
            keys,
            purpose: PURPOSE,
            alike: alike.finalize(),
            most_bytes: MOST_BYTES,
        })
    }

    /// Writes as many letters as the notes need, and at least one for a renewal. The first letter carries
    /// the renewal.
    pub fn letters(
        &self,
        header: &Header,
        renewal: Renewal,
        notes: &[Note],
    ) -> impl Iterator<Item = Vec<u8>> {
        let (first, others) = notes.split_at(notes.len().min(MOST_NOTES));
        let has_first = !first.is_empty() || !renewal.is_none();
        let first = has_first.then_some((renewal, first));
        let others = others.chunks(MOST_NOTES);
        let others = others.map(|notes| (Renewal::default(), notes));
        let all = first.into_iter().chain(others);
        all.map(|(renewal, notes)| self.0.close(&written(&Written::of(header, renewal, notes))))
    }

    /// Writes a letter without notes.
    #[must_use]
    pub fn empty(&self, header: &Header) -> Vec<u8> {
        self.0
            .close(&written(&Written::of(header, Renewal::default(), &[])))
    }

    /// Reads a letter.
    ///
    /// # Errors
    ///
    /// The letter is not from a node of the fleet, as this node knows it.
    pub fn open(&self, letter: &[u8]) -> Result<Letter, OpenError> {
        let written: Written = read(self.0.open(letter)?)?;
        written.read(MOST_NOTES).ok_or(OpenError::Notes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Ask, Boot, Budget, Key, LimitName, Loan, Message, NodeId, Owner, Share};

    /// The longest possible renewal.
    const RENEWAL: Renewal = Renewal {
        asked: Some(u64::MAX),
        answered: Some(u64::MAX),
    };

    fn key(byte: u8) -> Key {
        Key::new(&[byte; 32]).unwrap()
    }

    fn keys(current: u8, other: Option<u8>) -> Keys {
        Keys {
            current: key(current),
            other: other.map(key),
        }
    }

    fn members(names: &[&str]) -> Members {
        Members::new(names.iter().map(|&name| name.to_owned())).unwrap()
    }

    fn seal(keys: Keys) -> Seal {
        Seal::new("edge", &members(&["a", "b"]), &Terms::DEFAULT, keys)
    }

    fn header() -> Header {
        Header {
            from: NodeId(u32::MAX),
            to: NodeId(u32::MAX),
            boot: Boot(u64::MAX),
            to_boot: Boot(u64::MAX),
        }
    }

    /// The longest possible notes, each with a different limit.
    fn largest(count: usize) -> Vec<Note> {
        let note = |number: usize| Note {
            budget: Budget {
                limit: LimitName::of(&number.to_be_bytes()),
                owner: Owner {
                    kind: u32::MAX,
                    id: [0xff; 16],
                },
            },
            message: Message::Ask(Ask {
                number: u64::MAX,
                keeps: Share::WHOLE,
                returned_millitokens: u64::MAX,
                wants: Share::WHOLE,
            }),
        };
        (0..count).map(note).collect()
    }

    fn loan() -> Note {
        Note {
            budget: Budget {
                limit: LimitName([0xff; 16]),
                owner: Owner {
                    kind: 0x420,
                    id: [192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                },
            },
            message: Message::Loan(Loan {
                number: 2,
                share: Share::billionths(3),
                millitokens: 4,
            }),
        }
    }

    fn only(seal: &Seal, notes: &[Note]) -> Vec<u8> {
        let header = header();
        let mut letters = seal.letters(&header, Renewal::default(), notes);
        let letter = letters.next().unwrap();
        assert_eq!(letters.next(), None);
        letter
    }

    #[test]
    fn a_letter_says_what_was_written() {
        let seal = seal(keys(1, None));
        let mut notes = largest(2);
        notes.push(loan());
        notes.push(notes[0]);
        let opened = seal.open(&only(&seal, &notes)).unwrap();
        assert_eq!((opened.header, &opened.notes), (header(), &notes));
        assert_eq!(seal.letters(&header(), Renewal::default(), &[]).count(), 0);
        let empty = seal.open(&seal.empty(&header())).unwrap();
        assert_eq!((empty.header, empty.notes.len()), (header(), 0));
        // The notes need three letters, none too long.
        let many = largest(2 * MOST_NOTES + 1);
        let header = header();
        let letters: Vec<_> = seal.letters(&header, RENEWAL, &many).collect();
        assert_eq!(letters.len(), 3);
        assert!(letters[0].len() <= MOST_BYTES);
        let opened = letters
            .iter()
            .flat_map(|letter| seal.open(letter).unwrap().notes);
        let says = |letter: &Vec<u8>| seal.open(letter).unwrap().renewal;
        let nothing = Renewal::default();
        assert_eq!(
            [0, 1, 2].map(|at: usize| says(&letters[at])),
            [RENEWAL, nothing, nothing]
        );
        assert_eq!(opened.collect::<Vec<_>>(), many);
    }

    /// Most owners are addresses, and most notes of a letter share a limit.
    #[test]
    fn notes_are_short() {
        let seal = seal(keys(1, None));
        let length = |count: usize| only(&seal, &vec![loan(); count]).len();
        assert_eq!(length(101) - length(1), 100 * 12);
    }

    #[test]
    fn only_nodes_with_the_same_of_all_are_heard() {
        let own = seal(keys(1, None));
        let terms = Terms {
            loan_ns: 1,
            ..Terms::DEFAULT
        };
        let both = members(&["a", "b"]);
        for other in [
            seal(keys(2, None)),
            seal(keys(2, Some(1))),
            Seal::new("core", &both, &Terms::DEFAULT, keys(1, None)),
            Seal::new("edge", &both, &terms, keys(1, None)),
            // Different lists that read alike when concatenated.
            Seal::new("edge", &members(&["ab"]), &Terms::DEFAULT, keys(1, None)),
            Seal::new("edgea", &members(&["b"]), &Terms::DEFAULT, keys(1, None)),
        ] {
            let letter = only(&other, &[loan()]);
            assert_eq!(own.open(&letter), Err(OpenError::Seal));
        }
    }

    /// At each step, all nodes accept each other's letters.
    #[test]
    fn a_key_changes_while_the_fleet_runs() {
        let steps = [
            keys(1, None),
            keys(1, Some(2)),
            keys(2, Some(1)),
            keys(2, None),
        ]
        .map(seal);
        for pair in steps.windows(2) {
            for (one, other) in [(0, 1), (1, 0)] {
                let letter = only(&pair[one], &[loan()]);
                assert!(pair[other].open(&letter).is_ok());
            }
        }
        let old = only(&steps[0], &[loan()]);
        assert_eq!(steps[3].open(&old), Err(OpenError::Seal));
    }

    /// A share above the whole is cut to the whole.
    #[test]
    fn numbers_are_held_to_their_bounds() {
        let seal = seal(keys(1, None));
        let mut body = written(&Written::of(&header(), RENEWAL, &[loan()]));
        let share = body.len() - 2;
        assert_eq!(body[share], 3);
        body.splice(
            share..=share,
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        );
        let mut letter = seal.0.close(&body);
        let notes = seal.open(&letter).unwrap().notes;
        let Message::Loan(loan) = notes[0].message else {
            panic!("{notes:?}")
        };
        assert_eq!(loan.share, Share::WHOLE);
        letter.push(0);
        assert_eq!(seal.open(&letter), Err(OpenError::Seal));
        assert_eq!(seal.open(&vec![0; MOST_BYTES + 1]), Err(OpenError::TooLong));
        letter[0] = 2;
        assert_eq!(seal.open(&letter), Err(OpenError::Version));
        assert_eq!(seal.open(&[]), Err(OpenError::Seal));
    }

    proptest! {
        /// Bytes sealed with the right key are a letter or `OpenError::Notes`.
        #[test]
        fn any_sealed_bytes_are_notes_or_none(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let seal = seal(keys(1, None));
            let letter = seal.0.close(&body);
            match seal.open(&letter) {
                Ok(letter) => prop_assert!(letter.notes.len() <= MOST_NOTES),
                Err(error) => prop_assert_eq!(error, OpenError::Notes),
            }
        }

        #[test]
        fn a_changed_letter_is_none(at in 1_usize..100, to: u8) {
            let seal = seal(keys(1, None));
            let mut letter = only(&seal, &[loan()]);
            let at = at % letter.len();
            prop_assume!(at > 0 && letter[at] != to);
            letter[at] = to;
            prop_assert_eq!(seal.open(&letter), Err(OpenError::Seal));
        }
    }
}
