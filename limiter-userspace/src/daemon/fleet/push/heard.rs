//! A push of another node, as this one hears of it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use limiter_fleet::pushes::{Order, PushId, Step, Takers, Wish};

use crate::protocol::PushStatus;

/// How long after it was last heard of another node's push is under way.
const UNDER_WAY: Duration = Duration::from_secs(15);

/// How long a wish stands that the command repeats meanwhile.
const STANDS: Duration = Duration::from_secs(2);

/// Another node's push.
pub(in crate::daemon::fleet) struct OtherPush {
    order: Order,
    heard: Instant,
    wish: Option<(Wish, Instant)>,
}

impl OtherPush {
    /// Notes its first order.
    pub(super) const fn new(order: Order, heard: Instant) -> Self {
        Self {
            order,
            heard,
            wish: None,
        }
    }

    /// Notes its next order, or the first of another one.
    pub(super) fn hear(other: &mut Option<Self>, order: Order) {
        let new = Self::new(order, Instant::now());
        match other {
            Some(known) if known.order.push == new.order.push => {
                (known.order, known.heard) = (new.order, new.heard);
            }
            _ => *other = Some(new),
        }
    }

    /// Returns whether it is heard of.
    pub(super) fn is_heard(&self) -> bool {
        self.heard.elapsed() < UNDER_WAY
    }

    /// Returns whether it is under way, and not decided.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_heard() && !self.order.is_last()
    }

    pub(super) const fn push(&self) -> &PushId {
        &self.order.push
    }

    /// Returns what an operator wants of that push just now.
    pub(super) fn wish(&self, push: &PushId) -> Option<Wish> {
        let (wish, at) = self.wish?;
        (self.order.push == *push && at.elapsed() < STANDS).then_some(wish)
    }

    /// Notes what an operator wants, and returns how far that is; `None`: it is too early to keep it, or decided
    /// otherwise.
    pub(super) fn ask(&mut self, keep: bool) -> Option<PushStatus> {
        let stage = match (&self.order.step, keep) {
            (Step::Keep, true) => "keeping",
            (Step::Back, false) => "going-back",
            (Step::Take(Takers::All), true) | (Step::Check | Step::Take(_), false) => {
                let wish = if keep { Wish::Keep } else { Wish::Back };
                self.wish = Some((wish, Instant::now()));
                "asked"
            }
            _ => return None,
        };
        Some(PushStatus {
            push: self.order.push.to_string(),
            sha256: hex(&self.order.file),
            stage: stage.to_owned(),
            over: false,
            why: None,
            left_ns: None,
            nodes: BTreeMap::new(),
        })
    }
}

/// Returns a digest in hexadecimal digits.
pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut hex, byte| {
        // Memory takes all that is written.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
