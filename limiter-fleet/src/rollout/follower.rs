//! A node's part in a rollout that another node leads.

use super::{
    command::{Command, CommandError, RolloutId, Step},
    reply::{NodeState, Reply},
};
use crate::Name;

/// A node's part in rollouts.
#[derive(Clone, Debug)]
pub struct Follower {
    own: Name,
    /// The newest known rollout, remembered across restarts.
    newest: Option<RolloutId>,
    current: Option<CurrentRollout>,
}

/// The rollout that the node takes part in.
#[derive(Clone, Debug)]
struct CurrentRollout {
    rollout: RolloutId,
    file: [u8; 32],
    /// The highest command number so far.
    number: u64,
    state: NodeState,
    /// Whether the node is carrying out a command. Until it is done, it ignores other commands.
    is_at_it: bool,
    /// The number of the last reply.
    replied: u64,
}

/// The node's next step. It reports the result with [`Follower::report`], except for the first two variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing: it is done, or the command is a repetition.
    Nothing,
    /// Hold the policy for longer.
    Hold,
    /// Check the file.
    Check,
    /// Enforce the file.
    Take,
    /// Keep the policy.
    Keep,
    /// Return to the earlier policy.
    Back,
}

impl Follower {
    /// Returns the part of a node. `newest` is the newest rollout that it began to take before it restarted.
    #[must_use]
    pub const fn new(own: Name, newest: Option<RolloutId>) -> Self {
        Self {
            own,
            newest,
            current: None,
        }
    }

    /// The newest known rollout.
    #[must_use]
    pub const fn newest(&self) -> Option<&RolloutId> {
        self.newest.as_ref()
    }

    /// The rollout with a policy that is or may be in force without being kept.
    #[must_use]
    pub fn held(&self) -> Option<&RolloutId> {
        let current = self.current.as_ref()?;
        current.state.is_held().then_some(&current.rollout)
    }

    /// Handles a command, at a time in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// The command must not be followed.
    pub fn receive(&mut self, command: &Command, now_ms: u64) -> Result<Act, CommandError> {
        command.check(now_ms)?;
        match &mut self.current {
            Some(current) if current.rollout == command.rollout => {
                current.receive(command, &self.own)
            }
            Some(current) if current.state.is_held() => Err(CommandError::Busy),
            _ => self.begin(command),
        }
    }

    fn begin(&mut self, command: &Command) -> Result<Act, CommandError> {
        if self.newest.as_ref() >= Some(&command.rollout) {
            return Err(CommandError::Older);
        }
        if command.step != Step::Check {
            return Err(CommandError::Unchecked);
        }
        self.newest = Some(command.rollout.clone());
        self.current = Some(CurrentRollout {
            rollout: command.rollout.clone(),
            file: command.file,
            number: command.number,
            state: NodeState::Checking,
            is_at_it: true,
            replied: 0,
        });
        Ok(Act::Check)
    }

    /// Records the result of a step, or that the policy was rolled back in the meantime.
    pub fn report(&mut self, state: NodeState) {
        if let Some(current) = &mut self.current {
            current.state = state;
            current.is_at_it = false;
        }
    }

    /// Records that the held policy was rolled back in the meantime.
    pub fn went_back(&mut self, why: &str) {
        if let Some(current) = &self.current
            && !current.is_at_it
            && current.state.is_held()
        {
            self.report(NodeState::Back(why.into()));
        }
    }

    /// Returns the reply to send now, without a wish; `None`: the node knows of no rollout.
    pub fn reply(&mut self) -> Option<Reply> {
        let current = self.current.as_mut()?;
        current.replied += 1;
        Some(Reply {
            rollout: current.rollout.clone(),
            node: self.own.clone(),
            number: current.replied,
            state: current.state.clone(),
            wish: None,
        })
    }
}

impl CurrentRollout {
    fn receive(&mut self, command: &Command, own: &Name) -> Result<Act, CommandError> {
        if command.file != self.file {
            return Err(CommandError::OtherFile);
        }
        if command.number <= self.number {
            return Ok(Act::Nothing);
        }
        let act = match (&command.step, &self.state) {
            (Step::Take(recipients), NodeState::Would(_)) if recipients.contain(own) => {
                self.state = NodeState::Takes;
                Act::Take
            }
            (Step::Take(_), NodeState::Takes | NodeState::Holds(_)) => Act::Hold,
            // The leading node repeats its commands.
            _ if self.is_at_it => return Ok(Act::Nothing),
            (Step::Keep, NodeState::Holds(_)) => Act::Keep,
            (Step::Back, NodeState::Takes | NodeState::Holds(_)) => Act::Back,
            (Step::Back, NodeState::Would(_)) => {
                self.state = NodeState::Back("it was not taken here".into());
                Act::Nothing
            }
            _ => Act::Nothing,
        };
        self.number = command.number;
        self.is_at_it |= matches!(act, Act::Take | Act::Keep | Act::Back);
        Ok(act)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::{MOST_OLD_MS, Recipients};

    const NOW: u64 = 1_700_000_000_000;

    fn name(name: &str) -> Name {
        name.try_into().unwrap()
    }

    fn follower() -> Follower {
        Follower::new(name("b"), None)
    }

    fn rollout(ms: u64) -> RolloutId {
        RolloutId {
            ms,
            node: name("a"),
        }
    }

    fn command(ms: u64, number: u64, step: Step) -> Command {
        Command {
            rollout: rollout(ms),
            number,
            ms: NOW,
            file: [7; 32],
            hold_ms: 60_000,
            step,
        }
    }

    fn take() -> Step {
        Step::Take(Recipients::All)
    }

    #[track_caller]
    fn acts(node: &mut Follower, number: u64, step: Step, act: Act) {
        assert_eq!(node.receive(&command(NOW, number, step), NOW), Ok(act));
    }

    /// Returns a node that has checked a policy and would take it.
    fn checked() -> Follower {
        let mut node = follower();
        acts(&mut node, 1, Step::Check, Act::Check);
        node.report(NodeState::Would("nothing".into()));
        node
    }

    /// Returns a node that holds an unconfirmed policy.
    fn holding() -> Follower {
        let mut node = checked();
        acts(&mut node, 2, take(), Act::Take);
        assert_eq!(node.held(), Some(&rollout(NOW)));
        node.report(NodeState::Holds(7));
        node
    }

    #[test]
    fn taken_and_kept() {
        let mut node = holding();
        acts(&mut node, 3, take(), Act::Hold);
        acts(&mut node, 4, Step::Keep, Act::Keep);
        // While it keeps the policy, it does not begin again.
        acts(&mut node, 5, Step::Keep, Act::Nothing);
        node.report(NodeState::Kept(7));
        acts(&mut node, 6, Step::Keep, Act::Nothing);
        // A kept policy is not taken back.
        acts(&mut node, 7, Step::Back, Act::Nothing);
        assert_eq!(node.held(), None);
        let numbers = [node.reply().unwrap(), node.reply().unwrap()].map(|reply| reply.number);
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn taken_and_taken_back() {
        let mut node = holding();
        acts(&mut node, 3, Step::Back, Act::Back);
        node.report(NodeState::Back("it was told to".into()));
        // It is not taken again.
        acts(&mut node, 4, take(), Act::Nothing);
        acts(&mut node, 5, Step::Keep, Act::Nothing);
    }

    #[test]
    fn whatever_is_received_while_it_takes_is_done_thereafter() {
        let mut node = follower();
        node.receive(&command(NOW, 1, Step::Check), NOW).unwrap();
        acts(&mut node, 2, take(), Act::Nothing);
        node.report(NodeState::Would("nothing".into()));
        node.receive(&command(NOW, 3, take()), NOW).unwrap();
        acts(&mut node, 4, Step::Back, Act::Nothing);
        node.report(NodeState::Holds(7));
        acts(&mut node, 5, Step::Back, Act::Back);
    }

    #[test]
    fn only_those_that_are_named_take_it() {
        let mut node = checked();
        let others = Step::Take(Recipients::Some(vec![name("c")]));
        acts(&mut node, 2, others, Act::Nothing);
        assert_eq!(node.held(), None);
        acts(&mut node, 3, Step::Back, Act::Nothing);
        assert!(matches!(node.reply().unwrap().state, NodeState::Back(_)));
        acts(&mut node, 4, take(), Act::Nothing);
    }

    #[test]
    fn a_node_that_refuses_takes_nothing() {
        for state in [NodeState::Refuses("the guard".into()), NodeState::Declines] {
            let mut node = follower();
            acts(&mut node, 1, Step::Check, Act::Check);
            node.report(state.clone());
            for (number, step) in (2..).zip([take(), Step::Keep, Step::Back]) {
                acts(&mut node, number, step, Act::Nothing);
            }
            assert_eq!(node.reply().unwrap().state, state);
        }
    }

    #[test]
    fn nothing_repeated_changes_anything() {
        let mut node = holding();
        let [check, took] = [command(NOW, 1, Step::Check), command(NOW, 2, take())];
        for old in [&check, &took] {
            assert_eq!(node.receive(old, NOW), Ok(Act::Nothing));
        }
        node.receive(&command(NOW, 3, Step::Back), NOW).unwrap();
        node.report(NodeState::Back("it was told to".into()));
        // It follows neither the same rollout again nor an older one.
        for old in [&check, &took] {
            assert_eq!(node.receive(old, NOW), Ok(Act::Nothing));
        }
        let older = command(NOW - 1, 9, Step::Check);
        assert_eq!(node.receive(&older, NOW), Err(CommandError::Older));
        // A restarted node remembers the rollout, and does not begin it.
        let newest = node.newest().cloned();
        let mut anew = Follower::new(name("b"), newest);
        for old in [&check, &took, &older] {
            assert_eq!(anew.receive(old, NOW), Err(CommandError::Older));
        }
        assert_eq!(
            anew.receive(&command(NOW + 1, 1, Step::Check), NOW),
            Ok(Act::Check)
        );
        // Much later, the command is too old for any node.
        let later = NOW + MOST_OLD_MS + 1;
        assert_eq!(follower().receive(&check, later), Err(CommandError::Old));
    }

    #[test]
    fn one_rollout_at_a_time() {
        let mut node = holding();
        let newer = command(NOW + 1, 1, Step::Check);
        assert_eq!(node.receive(&newer, NOW), Err(CommandError::Busy));
        node.went_back("not confirmed in time");
        assert_eq!(node.receive(&newer, NOW), Ok(Act::Check));
        assert_eq!(node.newest(), Some(&rollout(NOW + 1)));
    }

    #[test]
    fn a_rollout_has_one_file_and_a_beginning() {
        let mut node = follower();
        assert_eq!(
            node.receive(&command(NOW, 1, take()), NOW),
            Err(CommandError::Unchecked)
        );
        assert_eq!(node.reply(), None);
        node.receive(&command(NOW, 1, Step::Check), NOW).unwrap();
        node.report(NodeState::Would("nothing".into()));
        let mut other = command(NOW, 2, take());
        other.file = [8; 32];
        assert_eq!(node.receive(&other, NOW), Err(CommandError::OtherFile));
        assert_eq!(node.held(), None);
    }

    #[test]
    fn time_takes_back_what_is_held_and_nothing_else() {
        let mut node = holding();
        node.went_back("not confirmed in time");
        assert_eq!(node.held(), None);
        acts(&mut node, 3, Step::Keep, Act::Nothing);
        let mut kept = holding();
        kept.receive(&command(NOW, 3, Step::Keep), NOW).unwrap();
        kept.went_back("not confirmed in time");
        kept.report(NodeState::Kept(7));
        kept.went_back("not confirmed in time");
        assert_eq!(kept.reply().unwrap().state, NodeState::Kept(7));
    }
}
