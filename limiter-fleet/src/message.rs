//! Messages between two nodes: requests and replies about many budgets at once.
//!
//! A message names each budget in full, by its limit and its owner, so that a bank can reply about a budget
//! that it has forgotten. Entries share the names of limits.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use crate::{Boot, Header, NodeId, Payload, Renewal};

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

/// An entry of a message, about one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The budget.
    pub budget: Budget,
    /// The payload.
    pub payload: Payload,
}

/// A message from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The header.
    pub header: Header,
    /// The renewal of all loans between the two nodes.
    pub renewal: Renewal,
    /// The entries. A message without entries only announces the current start of its writer.
    pub entries: Vec<Entry>,
}

/// The wire form of a message.
#[derive(Serialize, Deserialize)]
pub(crate) struct Written {
    /// The sender, the receiver, and the current start of each.
    header: (NodeId, NodeId, Boot, Boot),
    renewal: Renewal,
    limits: Vec<LimitName>,
    /// Each with the index of its limit in `limits`.
    entries: Vec<(u16, Owner, Payload)>,
}

impl Message {
    /// Returns whether it carries more than the current start of its writer.
    #[must_use]
    pub const fn has_content(&self) -> bool {
        !self.entries.is_empty() || !self.renewal.is_none()
    }
}

impl Written {
    pub(crate) fn of(header: &Header, renewal: Renewal, entries: &[Entry]) -> Self {
        let mut limits: Vec<LimitName> = Vec::new();
        let entries = entries.iter().map(|entry| {
            let limit = entry.budget.limit;
            // Searched from the end: limits are few, and most entries repeat the limit of the entry before.
            let found = limits.iter().rposition(|one| *one == limit);
            let position = found.unwrap_or_else(|| {
                limits.push(limit);
                limits.len() - 1
            });
            let position = u16::try_from(position).expect("a message has few entries");
            (position, entry.budget.owner, entry.payload)
        });
        let entries = entries.collect();
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
            entries,
        }
    }

    /// Returns the message; `None`: an entry refers to a missing limit, or there are more than `most`
    /// entries.
    pub(crate) fn read(self, most: usize) -> Option<Message> {
        if self.entries.len() > most {
            return None;
        }
        let entries = self.entries.into_iter().map(|(limit, owner, payload)| {
            let limit = *self.limits.get(usize::from(limit))?;
            let budget = Budget { limit, owner };
            Some(Entry { budget, payload })
        });
        let entries = entries.collect::<Option<_>>()?;
        let (from, to, boot, to_boot) = self.header;
        let header = Header {
            from,
            to,
            boot,
            to_boot,
        };
        Some(Message {
            header,
            renewal: self.renewal,
            entries,
        })
    }
}
