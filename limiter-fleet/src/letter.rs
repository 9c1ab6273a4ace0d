//! Letters between two nodes: questions and answers about many budgets at once.
//!
//! A letter names each budget in full, by its limit and its owner, so that a bank can answer about a budget
//! that it has forgotten. Notes share the names of limits.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use crate::{Boot, Header, Message, NodeId, Renewal};

/// The name of a limit, the same on all nodes: a digest of its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LimitName(pub [u8; 16]);

impl LimitName {
    /// Returns the name of a limit from its description: SHA-256, cut to half.
    #[must_use]
    pub fn of(description: &[u8]) -> Self {
        let mut name = [0; 16];
        for (to, byte) in name.iter_mut().zip(Sha256::digest(description)) {
            *to = byte;
        }
        Self(name)
    }
}

/// The owner of a bucket, the same on all nodes. This crate does not interpret its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The kind of its id.
    pub kind: u32,
    /// The id.
    pub id: [u8; 16],
}

/// Omits zeros at the end of the id.
impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = self.id.iter().rposition(|byte| *byte != 0);
        let written = written.map_or(0, |last| last + 1);
        (self.kind, self.id.get(..written).unwrap_or_default()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (kind, written) = <(u32, &[u8])>::deserialize(deserializer)?;
        let mut id = [0; 16];
        let Some(to) = id.get_mut(..written.len()) else {
            return Err(de::Error::custom("an id is too long"));
        };
        to.copy_from_slice(written);
        Ok(Self { kind, id })
    }
}

/// One owner's budget of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Budget {
    /// The limit.
    pub limit: LimitName,
    /// The owner.
    pub owner: Owner,
}

impl Budget {
    /// Returns the budget as bytes, unique to it.
    #[must_use]
    pub fn bytes(&self) -> [u8; 36] {
        let mut bytes = [0; 36];
        bytes[..16].copy_from_slice(&self.limit.0);
        bytes[16..20].copy_from_slice(&self.owner.kind.to_be_bytes());
        bytes[20..].copy_from_slice(&self.owner.id);
        bytes
    }
}

/// A message about one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The budget.
    pub budget: Budget,
    /// The message.
    pub message: Message,
}

/// A letter from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The header.
    pub header: Header,
    /// The renewal of all loans between the two nodes.
    pub renewal: Renewal,
    /// The notes. A letter without notes only announces the current start of its writer.
    pub notes: Vec<Note>,
}

/// The wire form of a letter.
#[derive(Serialize, Deserialize)]
pub(crate) struct Written {
    /// The sender, the receiver, and the current start of each.
    header: (NodeId, NodeId, Boot, Boot),
    renewal: Renewal,
    limits: Vec<LimitName>,
    /// Each with the index of its limit in `limits`.
    notes: Vec<(u16, Owner, Message)>,
}

impl Letter {
    /// Returns whether it carries more than the current start of its writer.
    #[must_use]
    pub const fn says_anything(&self) -> bool {
        !self.notes.is_empty() || !self.renewal.is_none()
    }
}

impl Written {
    pub(crate) fn of(header: &Header, renewal: Renewal, notes: &[Note]) -> Self {
        let mut limits: Vec<LimitName> = Vec::new();
        let notes = notes.iter().map(|note| {
            let limit = note.budget.limit;
            // Searched from the end: limits are few, and most notes repeat the limit of the note before.
            let found = limits.iter().rposition(|one| *one == limit);
            let position = found.unwrap_or_else(|| {
                limits.push(limit);
                limits.len() - 1
            });
            let position = u16::try_from(position).expect("a letter has few notes");
            (position, note.budget.owner, note.message)
        });
        let notes = notes.collect();
        let Header {
            from,
            to,
            boot,
            to_boot,
        } = *header;
        Self {
            header: (from, to, boot, to_boot),
            renewal,
            limits,
            notes,
        }
    }

    /// Returns the letter; `None`: a note refers to a missing limit, or there are more than `most` notes.
    pub(crate) fn read(self, most: usize) -> Option<Letter> {
        if self.notes.len() > most {
            return None;
        }
        let notes = self.notes.into_iter().map(|(limit, owner, message)| {
            let limit = *self.limits.get(usize::from(limit))?;
            let budget = Budget { limit, owner };
            Some(Note { budget, message })
        });
        let notes = notes.collect::<Option<_>>()?;
        let (from, to, boot, to_boot) = self.header;
        let header = Header {
            from,
            to,
            boot,
            to_boot,
        };
        Some(Letter {
            header,
            renewal: self.renewal,
            notes,
        })
    }
}
