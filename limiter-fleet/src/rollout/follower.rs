//! A node's part in the newest rollout.

use std::time::Duration;

use super::{
    Rollouts,
    error::{CommandError, RolloutError},
    message::{Command, Reply},
    status::{NodePart, NodeState, RolloutId, RolloutStage, RolloutStatus},
};
const S: u64 = 1_000_000_000;

/// How long after its last command a rollout counts as under way, in nanoseconds.
const UNDER_WAY_NS: u64 = 15 * S;

/// How long a wish holds, in nanoseconds; `limiter fleet confirm` repeats it meanwhile.
const WISH_NS: u64 = 2 * S;

/// The rollout that the node takes part in.
#[derive(Clone, Debug)]
pub(super) struct CurrentRollout {
    /// The last command: the stage that the node strives for.
    command: Command,
    received_ns: u64,
    part: NodePart,
    /// The number of the last reply.
    replied: u64,
    /// An operator's wish, and its time.
    wish: Option<(bool, u64)>,
}

/// A node's work for a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Check the file.
    Check,
    /// Enforce the file, and hold it for that long.
    Take(Duration),
    /// Keep the policy.
    Keep,
}

impl Rollouts {
    /// Handles a command, at a time in milliseconds since 1970.
    pub fn follow(
        &mut self,
        command: Command,
        unix_ms: u64,
        now_ns: u64,
    ) -> Result<(), CommandError> {
        command.check(unix_ms)?;
        match &mut self.current {
            Some(current) if current.command.rollout == command.rollout => {
                if command.sha256 != current.command.sha256 {
                    return Err(CommandError::OtherFile);
                }
                if command.number <= current.command.number {
                    return Err(CommandError::Repeated);
                }
                (current.command, current.received_ns) = (command, now_ns);
            }
            Some(current) if current.is_held() => return Err(CommandError::Busy),
            _ if self.newest.as_ref() >= Some(&command.rollout) => return Err(CommandError::Older),
            _ if command.stage != RolloutStage::Checking => return Err(CommandError::Unchecked),
            _ => {
                self.newest = Some(command.rollout.clone());
                self.current = Some(CurrentRollout {
                    command,
                    received_ns: now_ns,
                    part: NodeState::Checking.into(),
                    replied: 0,
                    wish: None,
                });
            }
        }
        Ok(())
    }

    /// Returns the work to begin now, and the command that wants it. Ask only once earlier work is
    /// [reported](Self::report).
    pub fn work(&mut self) -> Option<(Command, Work)> {
        let current = self.current.as_mut()?;
        let Command {
            stage, canaries, ..
        } = &current.command;
        let takes = match stage {
            RolloutStage::Canaries => canaries.contains(&self.own),
            RolloutStage::Others | RolloutStage::Waiting => true,
            _ => false,
        };
        let work = match current.part.state {
            NodeState::Checking if *stage == RolloutStage::Checking => Work::Check,
            NodeState::Would if takes => {
                current.part = NodeState::Taking.into();
                Work::Take(Duration::from_nanos(current.command.hold_ns))
            }
            NodeState::Holds if stage.keeps() => Work::Keep,
            NodeState::Checking | NodeState::Would if stage.goes_back() => {
                current.part = NodePart::because(NodeState::Back, "it was not taken here");
                return None;
            }
            _ => return None,
        };
        Some((current.command.clone(), work))
    }

    /// Returns whether the node must return to the earlier policy now.
    #[must_use]
    pub fn must_go_back(&self) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.is_held() && current.command.stage.goes_back())
    }

    /// Records the node's part after work for a rollout.
    pub fn report(&mut self, rollout: &RolloutId, part: NodePart) {
        if let Some(current) = &mut self.current
            && current.command.rollout == *rollout
        {
            current.part = part;
        }
    }

    /// Records that no unconfirmed policy is in force, while no work is under way; returns whether one was.
    pub fn went_back(&mut self) -> bool {
        let Some(current) = self.current.as_mut().filter(|current| current.is_held()) else {
            return false;
        };
        let why = if current.command.stage.goes_back() {
            "it was told to"
        } else {
            "it was not confirmed in time"
        };
        current.part = NodePart::because(NodeState::Back, why);
        true
    }

    /// Returns the reply to send now; `None`: there is no rollout, or none any more.
    pub fn reply(&mut self, now_ns: u64) -> Option<Reply> {
        let current = self
            .current
            .as_mut()
            .filter(|current| current.is_recent(now_ns))?;
        current.replied += 1;
        let wish = current.wish;
        let wish = wish.filter(|(_, at_ns)| now_ns.saturating_sub(*at_ns) < WISH_NS);
        Some(Reply {
            rollout: current.command.rollout.clone(),
            node: self.own.clone(),
            number: current.replied,
            part: current.part.clone(),
            wish: wish.map(|(keep, _)| keep),
        })
    }

    /// Returns the last command, if another node's rollout is under way.
    pub(super) fn other_rollout(&self, now_ns: u64) -> Option<&Command> {
        let current = self
            .current
            .as_ref()
            .filter(|current| current.is_recent(now_ns))?;
        (current.command.rollout.node != self.own).then_some(&current.command)
    }

    /// Has the leading node know an operator's wish, for a short time, unless the rollout is decided.
    /// Returns the status as of the last command.
    pub(super) fn wish(&mut self, keep: bool, now_ns: u64) -> Result<RolloutStatus, RolloutError> {
        let current = self.current.as_mut().ok_or(RolloutError::Nothing)?;
        let Command {
            rollout,
            sha256,
            stage,
            ..
        } = current.command.clone();
        match stage {
            _ if keep && stage.keeps() || !keep && stage.goes_back() => {}
            RolloutStage::Checking | RolloutStage::Canaries if keep => {
                return Err(RolloutError::NotWaiting);
            }
            // The leading node may not know yet that all nodes hold the file.
            _ if stage.is_undecided() => current.wish = Some((keep, now_ns)),
            _ => return Err(RolloutError::Decided),
        }
        Ok(RolloutStatus::new(rollout, sha256, stage))
    }
}

impl CurrentRollout {
    /// Returns whether it is under way.
    const fn is_recent(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.received_ns) < UNDER_WAY_NS
    }

    /// Returns whether the file is or may be in force without being kept.
    const fn is_held(&self) -> bool {
        matches!(self.part.state, NodeState::Taking | NodeState::Holds)
    }
}
