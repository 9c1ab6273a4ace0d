//! A push of another node, as known from its orders.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use limiter_fleet::pushes::{Order, PushId, Step, Takers, Wish};

use crate::protocol::PushStatus;

/// How long after its last order another node's push counts as under way.
const UNDER_WAY: Duration = Duration::from_secs(15);

/// How long a wish holds; the command repeats it meanwhile.
const STANDS: Duration = Duration::from_secs(2);

pub(in crate::daemon::fleet) struct OtherPush {
    order: Order,
    received: Instant,
    wish: Option<(Wish, Instant)>,
}

impl OtherPush {
    /// Begins with the first order of a push.
    pub(super) const fn new(order: Order, received: Instant) -> Self {
        Self {
            order,
            received,
            wish: None,
        }
    }

    /// Takes the next order, or the first order of another push.
    pub(super) fn receive(other: &mut Option<Self>, order: Order) {
        let new = Self::new(order, Instant::now());
        match other {
            Some(known) if known.order.push == new.order.push => {
                (known.order, known.received) = (new.order, new.received);
            }
            _ => *other = Some(new),
        }
    }

    /// Returns whether its last order is recent.
    pub(super) fn is_recent(&self) -> bool {
        self.received.elapsed() < UNDER_WAY
    }

    /// Returns whether it is under way and undecided.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_recent() && !self.order.is_last()
    }

    pub(super) const fn push(&self) -> &PushId {
        &self.order.push
    }

    /// Returns an operator's present wish for that push.
    pub(super) fn wish(&self, push: &PushId) -> Option<Wish> {
        let (wish, at) = self.wish?;
        (self.order.push == *push && at.elapsed() < STANDS).then_some(wish)
    }

    /// Records an operator's wish, and returns the state of the push; `None`: it is too early to keep the
    /// policy, or the opposite is decided.
    pub(super) fn request(&mut self, keep: bool) -> Option<PushStatus> {
        let stage = match (&self.order.step, keep) {
            (Step::Keep, true) => "keeping",
            (Step::Back, false) => "going-back",
            (Step::Take(Takers::All), true) | (Step::Check | Step::Take(_), false) => {
                let wish = if keep { Wish::Keep } else { Wish::Back };
                self.wish = Some((wish, Instant::now()));
                "requested"
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

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
