//! A rollout of another node, as known from its commands.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use limiter_fleet::rollout::{Command, Recipients, RolloutId, Step, Wish};

use crate::protocol::RolloutStatus;

/// How long after its last command another node's rollout counts as under way.
const UNDER_WAY: Duration = Duration::from_secs(15);

/// How long a wish holds; `limiter fleet confirm` repeats it meanwhile.
const STANDS: Duration = Duration::from_secs(2);

pub(in crate::daemon::fleet) struct OtherRollout {
    command: Command,
    received: Instant,
    wish: Option<(Wish, Instant)>,
}

impl OtherRollout {
    /// Begins with the first command of a rollout.
    pub(super) const fn new(command: Command, received: Instant) -> Self {
        Self {
            command,
            received,
            wish: None,
        }
    }

    /// Takes the next command, or the first command of another rollout.
    pub(super) fn receive(other: &mut Option<Self>, command: Command) {
        let new = Self::new(command, Instant::now());
        match other {
            Some(known) if known.command.rollout == new.command.rollout => {
                (known.command, known.received) = (new.command, new.received);
            }
            _ => *other = Some(new),
        }
    }

    /// Returns whether its last command is recent.
    pub(super) fn is_recent(&self) -> bool {
        self.received.elapsed() < UNDER_WAY
    }

    /// Returns whether it is under way and undecided.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_recent() && !self.command.is_last()
    }

    pub(super) const fn rollout(&self) -> &RolloutId {
        &self.command.rollout
    }

    /// Returns an operator's present wish for that rollout.
    pub(super) fn wish(&self, rollout: &RolloutId) -> Option<Wish> {
        let (wish, at) = self.wish?;
        (self.command.rollout == *rollout && at.elapsed() < STANDS).then_some(wish)
    }

    /// Records an operator's wish, and returns the state of the rollout; `None`: it is too early to keep the
    /// policy, or the opposite is decided.
    pub(super) fn request(&mut self, keep: bool) -> Option<RolloutStatus> {
        let stage = match (&self.command.step, keep) {
            (Step::Keep, true) => "keeping",
            (Step::Back, false) => "going-back",
            (Step::Take(Recipients::All), true) | (Step::Check | Step::Take(_), false) => {
                let wish = if keep { Wish::Keep } else { Wish::Back };
                self.wish = Some((wish, Instant::now()));
                "requested"
            }
            _ => return None,
        };
        Some(RolloutStatus {
            rollout: self.command.rollout.to_string(),
            sha256: hex(&self.command.file),
            stage: stage.to_owned(),
            ..RolloutStatus::default()
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
