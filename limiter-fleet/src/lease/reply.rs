//! The script's reply to a call.

use super::KeyName;
use crate::Share;

/// The script's answer to a key that a call names.
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
        /// One for each key that the call names.
        grants: Vec<Grant>,
        /// Keys with a fair share that differs from the lease.
        hints: Vec<(KeyName, Share)>,
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

impl Reply {
    /// Reads a reply; `None`: it has another form.
    #[must_use]
    pub fn read(item: ReplyItem) -> Option<Self> {
        let mut items = item.list()?.into_iter();
        let mut next = || items.next();
        match next()?.bytes()?.as_slice() {
            b"ok" => Some(Self::Renewed {
                nodes: next()?.number()?,
                ended: next()?.number()?,
                has_rival: next()?.number()? != 0,
                grants: grants(next()?.list()?)?,
                hints: hints(next()?.list()?)?,
            }),
            b"old" => Some(Self::Old),
            b"taken" => Some(Self::Taken),
            b"full" => Some(Self::Full),
            b"lost" => Some(Self::Lost),
            _ => None,
        }
    }
}

fn grants(items: Vec<ReplyItem>) -> Option<Vec<Grant>> {
    let numbers: Vec<u64> = items
        .into_iter()
        .map(ReplyItem::number)
        .collect::<Option<_>>()?;
    let grants = numbers.chunks(3).map(|numbers| match *numbers {
        [share, tokens, goal] => Some(Grant {
            share: Share::billionths(share),
            tokens,
            goal: Share::billionths(goal),
        }),
        _ => None,
    });
    grants.collect()
}

fn hints(items: Vec<ReplyItem>) -> Option<Vec<(KeyName, Share)>> {
    let mut items = items.into_iter();
    let mut hints = Vec::new();
    while let Some(key) = items.next() {
        let goal = Share::billionths(items.next()?.number()?);
        hints.push((key.bytes()?.try_into().ok()?, goal));
    }
    Some(hints)
}

impl ReplyItem {
    fn number(self) -> Option<u64> {
        let Self::Number(number) = self else {
            return None;
        };
        number.try_into().ok()
    }

    fn bytes(self) -> Option<Vec<u8>> {
        let Self::Bytes(bytes) = self else {
            return None;
        };
        Some(bytes)
    }

    fn list(self) -> Option<Vec<Self>> {
        let Self::List(items) = self else {
            return None;
        };
        Some(items)
    }
}
