//! All budgets of which this node has a share.

use std::collections::BTreeMap;

use limiter_fleet::{Budget as BudgetId, Message, NodeId, Note};
use limiter_policy::policy::Limit;

use super::{
    budget::{Budget, Common},
    lever::Host,
    me::Me,
};
use crate::protocol::FleetShare;

/// A note to a node.
pub(super) type Addressed = (NodeId, Note);

/// The budgets.
pub(super) struct Keeper {
    me: Me,
    budgets: BTreeMap<BudgetId, Budget>,
}

impl Keeper {
    pub(super) const fn new(me: Me) -> Self {
        Self {
            me,
            budgets: BTreeMap::new(),
        }
    }

    /// Goes on with the limits of the policy in force. One whose terms have changed is another budget, and
    /// begins at its floor.
    pub(super) fn follow<H: Host>(&mut self, host: &H, limits: &[Limit]) {
        let mut before = std::mem::take(&mut self.budgets);
        let nodes = self.me.members.count();
        for limit in limits {
            let Some(common) = Common::of(limit, nodes) else {
                continue;
            };
            let id = common.id();
            let budget = match before.remove(&id) {
                Some(mut budget) => {
                    budget.is_of(limit.id);
                    budget
                }
                None => Budget::new(common, limit.id, &self.me, host.now_ns()),
            };
            self.budgets.insert(id, budget);
        }
    }

    /// Asks for what packets want; returns what is to be said.
    pub(super) fn ask<H: Host>(&mut self, host: &H) -> Vec<Addressed> {
        let me = &self.me;
        let budgets = self.budgets.iter_mut();
        let said = budgets.flat_map(|(id, budget)| {
            let asks = budget.ask(host, me).into_iter();
            asks.map(|message| addressed(*id, message))
        });
        said.collect()
    }

    /// Hears a letter of another node; returns what is to be said.
    pub(super) fn hear<H: Host>(&mut self, host: &H, notes: &[Note]) -> Vec<Addressed> {
        let me = &self.me;
        let mut said = Vec::new();
        for note in notes {
            let Some(budget) = self.budgets.get_mut(&note.budget) else {
                // This node has other terms, or has not read its configuration again yet.
                continue;
            };
            match &note.message {
                Message::Ask(ask) => {
                    let loan = budget.hear_ask(host, me, ask).map(Message::Loan);
                    said.extend(loan.map(|loan| addressed(note.budget, loan)));
                }
                Message::Loan(loan) => budget.hear_loan(host, me, loan),
            }
        }
        said
    }

    /// Returns whether there are none.
    pub(super) fn is_idle(&self) -> bool {
        self.budgets.is_empty()
    }

    /// Tells what this node has, by the limits' names.
    pub(super) fn status<H: Host>(&self, host: &H) -> BTreeMap<String, FleetShare> {
        let budgets = self.budgets.values();
        let now_ns = host.now_ns();
        budgets
            .map(|budget| (budget.common.name.clone(), budget.status(now_ns)))
            .collect()
    }

    /// Returns the name of a node.
    pub(super) fn name_of(&self, node: NodeId) -> Option<&str> {
        let index = usize::try_from(node.0).ok()?;
        self.me.members.names().nth(index)
    }
}

const fn addressed(budget: BudgetId, message: Message) -> Addressed {
    let to = match &message {
        Message::Ask(ask) => ask.to,
        Message::Loan(loan) => loan.to,
    };
    (to, Note { budget, message })
}
