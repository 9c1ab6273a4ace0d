//! A node's call of the script, and the script's reply.

use std::fmt;

use crate::{Name, Share};

/// The script that divides budgets, in Lua 5.1 as Redis runs it. It describes its arguments and its reply.
pub const ARBITER: &str = include_str!("arbiter.lua");

/// The most keys that a call names: a script of some milliseconds.
pub const MOST_ENTRIES: usize = 256;

/// A call of the script.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) id: CallId,
    /// The time since the last call, in milliseconds.
    pub(super) elapsed_ms: u64,
    /// Whether the entries report leases that the store has forgotten.
    pub(super) is_report: bool,
}

/// A call, among all of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallId {
    /// The start of the session: a number above all earlier ones of this node.
    pub(super) start: u64,
    /// Counts the calls of the session, from 1.
    pub(super) number: u64,
}

/// The present state of a lease, as a call names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The share that the node keeps: it uses no more.
    pub keeps: Share,
    /// The tokens that the node returns, in billionths of the burst.
    pub returned: u64,
    /// The share that packets need, above the minimum.
    pub demand: Share,
}

/// The script's answer to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The share that the node may use now.
    pub share: Share,
    /// The tokens that come with it, in billionths of the burst.
    pub tokens: u64,
    /// The node's fair share: smaller if it must return some, larger if others must.
    pub goal: Share,
}

/// An item of a reply, as a store returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyItem {
    /// A number.
    Number(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<ReplyItem>),
}

/// The script's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The session is renewed.
    Renewed {
        /// The number of nodes with a session.
        nodes: u64,
        /// The number of sessions that have ended.
        ended: u64,
        /// Whether another node uses this node's name.
        has_rival: bool,
        /// One for each entry of the call.
        grants: Vec<Grant>,
        /// Keys with a fair share that differs from the lease.
        hints: Vec<(Vec<u8>, Share)>,
    },
    /// A later call has overtaken this one.
    Old,
    /// A later node has this name.
    Taken,
    /// The fleet has its most nodes.
    Full,
    /// The store does not know the session.
    Lost,
}

/// A reply has an unexpected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedReply;

impl fmt::Display for MalformedReply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the script's reply has an unexpected form")
    }
}

impl std::error::Error for MalformedReply {}

impl Call {
    /// The call's identity.
    #[must_use]
    pub const fn id(&self) -> CallId {
        self.id
    }

    /// The arguments of the script after the first, which the connection knows. `nodes`: the most nodes; for each entry
    /// its key and the time in which the key's empty bucket fills, in milliseconds.
    pub fn arguments<'e>(
        &self,
        node: &Name,
        nodes: u32,
        entries: impl IntoIterator<Item = (&'e [u8], u64, Entry)>,
    ) -> Vec<Vec<u8>> {
        let number = |number: u64| number.to_string().into_bytes();
        let mut arguments = vec![
            node.as_str().as_bytes().to_vec(),
            number(self.id.start),
            number(self.id.number),
            number(self.elapsed_ms),
            number(nodes.into()),
            number(self.is_report.into()),
        ];
        for (key, fill_ms, entry) in entries {
            arguments.push(key.to_vec());
            arguments.extend(
                [
                    fill_ms,
                    entry.keeps.in_billionths(),
                    entry.returned,
                    entry.demand.in_billionths(),
                ]
                .map(number),
            );
        }
        arguments
    }
}

impl TryFrom<ReplyItem> for Reply {
    type Error = MalformedReply;

    fn try_from(item: ReplyItem) -> Result<Self, MalformedReply> {
        let mut items = item.list()?.into_iter();
        let mut next = || items.next().ok_or(MalformedReply);
        match next()?.bytes()?.as_slice() {
            b"ok" => Ok(Self::Renewed {
                nodes: next()?.number()?,
                ended: next()?.number()?,
                has_rival: next()?.number()? != 0,
                grants: grants(next()?.list()?)?,
                hints: hints(next()?.list()?)?,
            }),
            b"old" => Ok(Self::Old),
            b"taken" => Ok(Self::Taken),
            b"full" => Ok(Self::Full),
            b"lost" => Ok(Self::Lost),
            _ => Err(MalformedReply),
        }
    }
}

fn grants(items: Vec<ReplyItem>) -> Result<Vec<Grant>, MalformedReply> {
    let numbers: Vec<u64> = items
        .into_iter()
        .map(ReplyItem::number)
        .collect::<Result<_, _>>()?;
    let grants = numbers.chunks(3).map(|numbers| match *numbers {
        [share, tokens, goal] => Ok(Grant {
            share: Share::billionths(share),
            tokens,
            goal: Share::billionths(goal),
        }),
        _ => Err(MalformedReply),
    });
    grants.collect()
}

fn hints(items: Vec<ReplyItem>) -> Result<Vec<(Vec<u8>, Share)>, MalformedReply> {
    let mut items = items.into_iter();
    let mut hints = Vec::new();
    while let Some(key) = items.next() {
        let goal = items.next().ok_or(MalformedReply)?.number()?;
        hints.push((key.bytes()?, Share::billionths(goal)));
    }
    Ok(hints)
}

impl ReplyItem {
    fn number(self) -> Result<u64, MalformedReply> {
        match self {
            Self::Number(number) => u64::try_from(number).map_err(|_| MalformedReply),
            Self::Bytes(_) | Self::List(_) => Err(MalformedReply),
        }
    }

    fn bytes(self) -> Result<Vec<u8>, MalformedReply> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) | Self::List(_) => Err(MalformedReply),
        }
    }

    fn list(self) -> Result<Vec<Self>, MalformedReply> {
        match self {
            Self::List(items) => Ok(items),
            Self::Number(_) | Self::Bytes(_) => Err(MalformedReply),
        }
    }
}
