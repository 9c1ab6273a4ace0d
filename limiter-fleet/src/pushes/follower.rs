//! A node's part in a push that another node leads.

use super::{
    order::{Order, PushId, Step, WrongOrder},
    reply::{PushReply, PushState},
};
use crate::Name;

/// A node's part in pushes.
#[derive(Clone, Debug)]
pub struct Follower {
    own: Name,
    /// The newest known push, remembered across restarts.
    newest: Option<PushId>,
    current: Option<Current>,
}

/// The push that the node takes part in.
#[derive(Clone, Debug)]
struct Current {
    push: PushId,
    file: [u8; 32],
    /// The highest order number so far.
    number: u64,
    state: PushState,
    /// Whether the node is carrying out an order. Until it is done, it ignores other orders.
    is_at_it: bool,
    /// The number of the last reply.
    replied: u64,
}

/// The node's next step. It reports the result with [`Follower::report`], except for the first two variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing: it is done, or the order is a repetition.
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
    /// Returns the part of a node. `newest` is the newest push that it began to take before it restarted.
    #[must_use]
    pub const fn new(own: Name, newest: Option<PushId>) -> Self {
        Self {
            own,
            newest,
            current: None,
        }
    }

    /// The newest known push.
    #[must_use]
    pub const fn newest(&self) -> Option<&PushId> {
        self.newest.as_ref()
    }

    /// The push with a policy that is or may be in force without being kept.
    #[must_use]
    pub fn held(&self) -> Option<&PushId> {
        let current = self.current.as_ref()?;
        current.state.is_held().then_some(&current.push)
    }

    /// Handles an order, at a time in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// The order must not be followed.
    pub fn receive(&mut self, order: &Order, now_ms: u64) -> Result<Act, WrongOrder> {
        order.check(now_ms)?;
        match &mut self.current {
            Some(current) if current.push == order.push => current.receive(order, &self.own),
            Some(current) if current.state.is_held() => Err(WrongOrder::Busy),
            _ => self.begin(order),
        }
    }

    fn begin(&mut self, order: &Order) -> Result<Act, WrongOrder> {
        if self
            .newest
            .as_ref()
            .is_some_and(|newest| order.push <= *newest)
        {
            return Err(WrongOrder::Older);
        }
        if order.step != Step::Check {
            return Err(WrongOrder::Unchecked);
        }
        self.newest = Some(order.push.clone());
        self.current = Some(Current {
            push: order.push.clone(),
            file: order.file,
            number: order.number,
            state: PushState::Checking,
            is_at_it: true,
            replied: 0,
        });
        Ok(Act::Check)
    }

    /// Records the result of a step, or that the policy was rolled back in the meantime.
    pub fn report(&mut self, state: PushState) {
        if let Some(current) = &mut self.current {
            current.state = state;
            current.is_at_it = false;
        }
    }

    /// Records that the held policy was rolled back in the meantime.
    pub fn went_back(&mut self, why: &str) {
        if self
            .current
            .as_ref()
            .is_some_and(|current| !current.is_at_it)
            && self.held().is_some()
        {
            self.report(PushState::Back(why.into()));
        }
    }

    /// Returns the reply to send now, without a wish; `None`: the node knows of no push.
    pub fn reply(&mut self) -> Option<PushReply> {
        let current = self.current.as_mut()?;
        current.replied += 1;
        Some(PushReply {
            push: current.push.clone(),
            node: self.own.clone(),
            number: current.replied,
            state: current.state.clone(),
            wish: None,
        })
    }
}

impl Current {
    fn receive(&mut self, order: &Order, own: &Name) -> Result<Act, WrongOrder> {
        if order.file != self.file {
            return Err(WrongOrder::OtherFile);
        }
        if order.number <= self.number {
            return Ok(Act::Nothing);
        }
        let act = match (&order.step, &self.state) {
            (Step::Take(takers), PushState::Would(_)) if takers.have(own) => {
                self.state = PushState::Takes;
                Act::Take
            }
            (Step::Take(_), PushState::Takes | PushState::Holds(_)) => Act::Hold,
            // The pushing node repeats its orders.
            _ if self.is_at_it => return Ok(Act::Nothing),
            (Step::Keep, PushState::Holds(_)) => Act::Keep,
            (Step::Back, PushState::Takes | PushState::Holds(_)) => Act::Back,
            (Step::Back, PushState::Would(_)) => {
                self.state = PushState::Back("it was not taken here".into());
                Act::Nothing
            }
            _ => Act::Nothing,
        };
        self.number = order.number;
        self.is_at_it |= matches!(act, Act::Take | Act::Keep | Act::Back);
        Ok(act)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pushes::{MOST_OLD_MS, Takers};

    const NOW: u64 = 1_700_000_000_000;

    fn name(name: &str) -> Name {
        name.try_into().unwrap()
    }

    fn follower() -> Follower {
        Follower::new(name("b"), None)
    }

    fn push(ms: u64) -> PushId {
        PushId {
            ms,
            node: name("a"),
        }
    }

    fn order(ms: u64, number: u64, step: Step) -> Order {
        Order {
            push: push(ms),
            number,
            ms: NOW,
            file: [7; 32],
            hold_ms: 60_000,
            step,
        }
    }

    fn take() -> Step {
        Step::Take(Takers::All)
    }

    /// Returns a node that holds a pushed policy.
    fn holding() -> Follower {
        let mut node = follower();
        assert_eq!(
            node.receive(&order(NOW, 1, Step::Check), NOW),
            Ok(Act::Check)
        );
        node.report(PushState::Would("nothing".into()));
        assert_eq!(node.receive(&order(NOW, 2, take()), NOW), Ok(Act::Take));
        assert_eq!(node.held(), Some(&push(NOW)));
        node.report(PushState::Holds(7));
        node
    }

    #[test]
    fn taken_and_kept() {
        let mut node = holding();
        assert_eq!(node.receive(&order(NOW, 3, take()), NOW), Ok(Act::Hold));
        assert_eq!(node.receive(&order(NOW, 4, Step::Keep), NOW), Ok(Act::Keep));
        // While it keeps the policy, it does not begin again.
        assert_eq!(
            node.receive(&order(NOW, 5, Step::Keep), NOW),
            Ok(Act::Nothing)
        );
        node.report(PushState::Kept(7));
        assert_eq!(
            node.receive(&order(NOW, 6, Step::Keep), NOW),
            Ok(Act::Nothing)
        );
        // A kept policy is not taken back.
        assert_eq!(
            node.receive(&order(NOW, 7, Step::Back), NOW),
            Ok(Act::Nothing)
        );
        assert_eq!(node.held(), None);
        let numbers = [node.reply().unwrap(), node.reply().unwrap()].map(|reply| reply.number);
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn taken_and_taken_back() {
        let mut node = holding();
        assert_eq!(node.receive(&order(NOW, 3, Step::Back), NOW), Ok(Act::Back));
        node.report(PushState::Back("it was told to".into()));
        // It is not taken again.
        assert_eq!(node.receive(&order(NOW, 4, take()), NOW), Ok(Act::Nothing));
        assert_eq!(
            node.receive(&order(NOW, 5, Step::Keep), NOW),
            Ok(Act::Nothing)
        );
    }

    #[test]
    fn whatever_is_received_while_it_takes_is_done_thereafter() {
        let mut node = follower();
        node.receive(&order(NOW, 1, Step::Check), NOW).unwrap();
        assert_eq!(
            node.receive(&order(NOW, 2, take()), NOW),
            Ok(Act::Nothing),
            "it still looks"
        );
        node.report(PushState::Would("nothing".into()));
        node.receive(&order(NOW, 3, take()), NOW).unwrap();
        assert_eq!(
            node.receive(&order(NOW, 4, Step::Back), NOW),
            Ok(Act::Nothing)
        );
        node.report(PushState::Holds(7));
        assert_eq!(node.receive(&order(NOW, 5, Step::Back), NOW), Ok(Act::Back));
    }

    #[test]
    fn only_those_that_are_named_take_it() {
        let mut node = follower();
        node.receive(&order(NOW, 1, Step::Check), NOW).unwrap();
        node.report(PushState::Would("nothing".into()));
        let others = Step::Take(Takers::Some(vec![name("c")]));
        assert_eq!(node.receive(&order(NOW, 2, others), NOW), Ok(Act::Nothing));
        assert_eq!(node.held(), None);
        assert_eq!(
            node.receive(&order(NOW, 3, Step::Back), NOW),
            Ok(Act::Nothing)
        );
        assert!(matches!(node.reply().unwrap().state, PushState::Back(_)));
        assert_eq!(node.receive(&order(NOW, 4, take()), NOW), Ok(Act::Nothing));
    }

    #[test]
    fn a_node_that_refuses_takes_nothing() {
        for state in [PushState::Refuses("the guard".into()), PushState::Declines] {
            let mut node = follower();
            node.receive(&order(NOW, 1, Step::Check), NOW).unwrap();
            node.report(state.clone());
            for (number, step) in (2..).zip([take(), Step::Keep, Step::Back]) {
                assert_eq!(
                    node.receive(&order(NOW, number, step), NOW),
                    Ok(Act::Nothing)
                );
            }
            assert_eq!(node.reply().unwrap().state, state);
        }
    }

    #[test]
    fn nothing_repeated_changes_anything() {
        let mut node = holding();
        let [check, took] = [order(NOW, 1, Step::Check), order(NOW, 2, take())];
        for old in [&check, &took] {
            assert_eq!(node.receive(old, NOW), Ok(Act::Nothing));
        }
        node.receive(&order(NOW, 3, Step::Back), NOW).unwrap();
        node.report(PushState::Back("it was told to".into()));
        // It follows neither the same push again nor an older one.
        for old in [&check, &took] {
            assert_eq!(node.receive(old, NOW), Ok(Act::Nothing));
        }
        let older = order(NOW - 1, 9, Step::Check);
        assert_eq!(node.receive(&older, NOW), Err(WrongOrder::Older));
        // A restarted node remembers the push, and does not begin it.
        let newest = node.newest().cloned();
        let mut anew = Follower::new(name("b"), newest);
        for old in [&check, &took, &older] {
            assert_eq!(anew.receive(old, NOW), Err(WrongOrder::Older));
        }
        assert_eq!(
            anew.receive(&order(NOW + 1, 1, Step::Check), NOW),
            Ok(Act::Check)
        );
        // Much later, the order is too old for any node.
        let later = NOW + MOST_OLD_MS + 1;
        assert_eq!(follower().receive(&check, later), Err(WrongOrder::Old));
    }

    #[test]
    fn one_push_at_a_time() {
        let mut node = holding();
        let newer = order(NOW + 1, 1, Step::Check);
        assert_eq!(node.receive(&newer, NOW), Err(WrongOrder::Busy));
        node.went_back("not confirmed in time");
        assert_eq!(node.receive(&newer, NOW), Ok(Act::Check));
        assert_eq!(node.newest(), Some(&push(NOW + 1)));
    }

    #[test]
    fn a_push_has_one_file_and_a_beginning() {
        let mut node = follower();
        assert_eq!(
            node.receive(&order(NOW, 1, take()), NOW),
            Err(WrongOrder::Unchecked)
        );
        assert_eq!(node.reply(), None);
        node.receive(&order(NOW, 1, Step::Check), NOW).unwrap();
        node.report(PushState::Would("nothing".into()));
        let mut other = order(NOW, 2, take());
        other.file = [8; 32];
        assert_eq!(node.receive(&other, NOW), Err(WrongOrder::OtherFile));
        assert_eq!(node.held(), None);
    }

    #[test]
    fn time_takes_back_what_is_held_and_nothing_else() {
        let mut node = holding();
        node.went_back("not confirmed in time");
        assert_eq!(node.held(), None);
        assert_eq!(
            node.receive(&order(NOW, 3, Step::Keep), NOW),
            Ok(Act::Nothing)
        );
        let mut kept = holding();
        kept.receive(&order(NOW, 3, Step::Keep), NOW).unwrap();
        kept.went_back("not confirmed in time");
        kept.report(PushState::Kept(7));
        kept.went_back("not confirmed in time");
        assert_eq!(kept.reply().unwrap().state, PushState::Kept(7));
    }
}
