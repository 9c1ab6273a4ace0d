//! Authentication of messages: a node accepts messages of its own fleet only.
//!
//! An authenticated message is a byte with the version of the format, the MAC, and the message as postcard
//! writes it. The MAC covers the message and a digest of the configuration that all nodes must share. This
//! enforces the protocol's assumption that all nodes have the same members and terms: other nodes cannot
//! send any.

use sha2::{Digest as _, Sha256};

use crate::{
    Entry, Header, Members, Message, Renewal, Terms,
    envelope::{Envelope, Keys, MAC_LENGTH, OpenError, read, written},
    message::Written,
};

/// Text that no other use of the key begins with. The number changes with the format of messages.
const PURPOSE: &[u8] = b"limiter fleet, letters 3";

/// The most entries of a message.
pub const MOST_ENTRIES: usize = 512;

/// The most bytes of a message: longer ones are refused unread.
pub const MOST_BYTES: usize =
    1 + MAC_LENGTH + HEADER + RENEWAL + 2 * LENGTH + MOST_ENTRIES * (LIMIT + LONGEST_ENTRY);

/// The most bytes of a header: two numbers of 32 bits and two of 64. Postcard writes seven bits a byte.
const HEADER: usize = 2 * 5 + 2 * 10;

/// The most bytes of a renewal: two optional numbers of 64 bits.
const RENEWAL: usize = 2 * (1 + 10);

/// The most bytes of a length or a position, of 16 bits.
const LENGTH: usize = 3;

/// The bytes of a limit's name.
const LIMIT: usize = 16;

/// The most bytes of an entry: the index of its limit, its owner, the kind of payload, and four numbers of 64
/// bits.
const LONGEST_ENTRY: usize = LENGTH + (5 + 1 + 16) + 1 + 4 * 10;

/// Authenticates and verifies the messages of one fleet.
#[derive(Clone, Debug)]
pub struct Authenticator(Envelope);

impl Authenticator {
    /// Returns the authenticator of the fleet with that name.
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

    /// Writes as many messages as the entries need, and at least one for a renewal. The first message carries
    /// the renewal.
    pub fn messages(
        &self,
        header: &Header,
        renewal: Renewal,
        entries: &[Entry],
    ) -> impl Iterator<Item = Vec<u8>> {
        let (first, others) = entries.split_at(entries.len().min(MOST_ENTRIES));
        let has_first = !first.is_empty() || !renewal.is_none();
        let first = has_first.then_some((renewal, first));
        let others = others.chunks(MOST_ENTRIES);
        let others = others.map(|entries| (Renewal::default(), entries));
        let all = first.into_iter().chain(others);
        all.map(|(renewal, entries)| {
            self.0
                .close(&written(&Written::of(header, renewal, entries)))
        })
    }

    /// Writes a message without entries.
    #[must_use]
    pub fn empty(&self, header: &Header) -> Vec<u8> {
        self.0
            .close(&written(&Written::of(header, Renewal::default(), &[])))
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// The message is not from a node of the fleet, as this node knows it.
    pub fn open(&self, message: &[u8]) -> Result<Message, OpenError> {
        let written: Written = read(self.0.open(message)?)?;
        written.read(MOST_ENTRIES).ok_or(OpenError::Body)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Boot, Budget, Key, LimitName, Loan, NodeId, Owner, Payload, Request, Share};

    /// The longest possible renewal.
    const RENEWAL: Renewal = Renewal {
        requested: Some(u64::MAX),
        replied: Some(u64::MAX),
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

    fn authenticator(keys: Keys) -> Authenticator {
        Authenticator::new("edge", &members(&["a", "b"]), &Terms::DEFAULT, keys)
    }

    fn header() -> Header {
        Header {
            from: NodeId(u32::MAX),
            to: NodeId(u32::MAX),
            boot: Boot(u64::MAX),
            to_boot: Boot(u64::MAX),
        }
    }

    /// The longest possible entries, each with a different limit.
    fn largest(count: usize) -> Vec<Entry> {
        let entry = |number: usize| Entry {
            budget: Budget {
                limit: LimitName::of(&number.to_be_bytes()),
                owner: Owner {
                    kind: u32::MAX,
                    id: [0xff; 16],
                },
            },
            payload: Payload::Request(Request {
                number: u64::MAX,
                keeps: Share::WHOLE,
                returned_millitokens: u64::MAX,
                wants: Share::WHOLE,
            }),
        };
        (0..count).map(entry).collect()
    }

    fn loan() -> Entry {
        Entry {
            budget: Budget {
                limit: LimitName([0xff; 16]),
                owner: Owner {
                    kind: 0x420,
                    id: [192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                },
            },
            payload: Payload::Loan(Loan {
                number: 2,
                share: Share::billionths(3),
                millitokens: 4,
            }),
        }
    }

    fn only(authenticator: &Authenticator, entries: &[Entry]) -> Vec<u8> {
        let header = header();
        let mut messages = authenticator.messages(&header, Renewal::default(), entries);
        let message = messages.next().unwrap();
        assert_eq!(messages.next(), None);
        message
    }

    #[test]
    fn a_message_has_what_was_written() {
        let authenticator = authenticator(keys(1, None));
        let mut entries = largest(2);
        entries.push(loan());
        entries.push(entries[0]);
        let opened = authenticator.open(&only(&authenticator, &entries)).unwrap();
        assert_eq!((opened.header, &opened.entries), (header(), &entries));
        assert_eq!(
            authenticator
                .messages(&header(), Renewal::default(), &[])
                .count(),
            0
        );
        let empty = authenticator.open(&authenticator.empty(&header())).unwrap();
        assert_eq!((empty.header, empty.entries.len()), (header(), 0));
        // The entries need three messages, none too long.
        let many = largest(2 * MOST_ENTRIES + 1);
        let header = header();
        let messages: Vec<_> = authenticator.messages(&header, RENEWAL, &many).collect();
        assert_eq!(messages.len(), 3);
        assert!(messages[0].len() <= MOST_BYTES);
        let opened = messages
            .iter()
            .flat_map(|message| authenticator.open(message).unwrap().entries);
        let renewal_of = |message: &Vec<u8>| authenticator.open(message).unwrap().renewal;
        let nothing = Renewal::default();
        assert_eq!(
            [0, 1, 2].map(|at: usize| renewal_of(&messages[at])),
            [RENEWAL, nothing, nothing]
        );
        assert_eq!(opened.collect::<Vec<_>>(), many);
    }

    /// Most owners are addresses, and most entries of a message share a limit.
    #[test]
    fn entries_are_short() {
        let authenticator = authenticator(keys(1, None));
        let length = |count: usize| only(&authenticator, &vec![loan(); count]).len();
        assert_eq!(length(101) - length(1), 100 * 12);
    }

    #[test]
    fn only_nodes_with_the_same_of_all_are_accepted() {
        let own = authenticator(keys(1, None));
        let terms = Terms {
            loan_ns: 1,
            ..Terms::DEFAULT
        };
        let both = members(&["a", "b"]);
        for other in [
            authenticator(keys(2, None)),
            authenticator(keys(2, Some(1))),
            Authenticator::new("core", &both, &Terms::DEFAULT, keys(1, None)),
            Authenticator::new("edge", &both, &terms, keys(1, None)),
            // Different lists that read alike when concatenated.
            Authenticator::new("edge", &members(&["ab"]), &Terms::DEFAULT, keys(1, None)),
            Authenticator::new("edgea", &members(&["b"]), &Terms::DEFAULT, keys(1, None)),
        ] {
            let message = only(&other, &[loan()]);
            assert_eq!(own.open(&message), Err(OpenError::Mac));
        }
    }

    /// At each step, all nodes accept each other's messages.
    #[test]
    fn a_key_changes_while_the_fleet_runs() {
        let steps = [
            keys(1, None),
            keys(1, Some(2)),
            keys(2, Some(1)),
            keys(2, None),
        ]
        .map(authenticator);
        for pair in steps.windows(2) {
            for (one, other) in [(0, 1), (1, 0)] {
                let message = only(&pair[one], &[loan()]);
                assert!(pair[other].open(&message).is_ok());
            }
        }
        let old = only(&steps[0], &[loan()]);
        assert_eq!(steps[3].open(&old), Err(OpenError::Mac));
    }

    /// A share above the whole is cut to the whole.
    #[test]
    fn numbers_are_held_to_their_bounds() {
        let authenticator = authenticator(keys(1, None));
        let mut body = written(&Written::of(&header(), RENEWAL, &[loan()]));
        let share = body.len() - 2;
        assert_eq!(body[share], 3);
        body.splice(
            share..=share,
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        );
        let mut message = authenticator.0.close(&body);
        let entries = authenticator.open(&message).unwrap().entries;
        let Payload::Loan(loan) = entries[0].payload else {
            panic!("{entries:?}")
        };
        assert_eq!(loan.share, Share::WHOLE);
        message.push(0);
        assert_eq!(authenticator.open(&message), Err(OpenError::Mac));
        assert_eq!(
            authenticator.open(&vec![0; MOST_BYTES + 1]),
            Err(OpenError::TooLong)
        );
        message[0] = 2;
        assert_eq!(authenticator.open(&message), Err(OpenError::Version));
        assert_eq!(authenticator.open(&[]), Err(OpenError::Mac));
    }

    proptest! {
        /// Bytes authenticated with the right key are a message or `OpenError::Body`.
        #[test]
        fn any_authenticated_bytes_are_entries_or_none(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let authenticator = authenticator(keys(1, None));
            let message = authenticator.0.close(&body);
            match authenticator.open(&message) {
                Ok(message) => prop_assert!(message.entries.len() <= MOST_ENTRIES),
                Err(error) => prop_assert_eq!(error, OpenError::Body),
            }
        }

        #[test]
        fn a_changed_message_is_none(at in 1_usize..100, to: u8) {
            let authenticator = authenticator(keys(1, None));
            let mut message = only(&authenticator, &[loan()]);
            let at = at % message.len();
            prop_assume!(at > 0 && message[at] != to);
            message[at] = to;
            prop_assert_eq!(authenticator.open(&message), Err(OpenError::Mac));
        }
    }
}
