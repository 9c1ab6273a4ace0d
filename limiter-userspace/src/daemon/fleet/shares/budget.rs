//! One limit's budget, of which this node has a share.

use limiter_common::limit::{Cost, LimitId};
use limiter_common::strategy::gcra::Parts;
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{Ask, Budget as BudgetId, Loan, Message, Node, Share};
use limiter_policy::policy::{Limit, Mode, Rate, in_common::floor_of};

use super::{
    bucket::ShareBucket,
    demand::Demand,
    lever::{Host, Lever},
    me::Me,
};
use crate::protocol::FleetShare;

/// The terms of a limit that all nodes must have alike, or they have no budget in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Common {
    pub(super) name: String,
    cost: Cost,
    rate: Rate,
    /// What each node always has.
    floor: Parts,
}

impl Common {
    /// Returns what is in common among so many nodes; `None`: nothing is.
    pub(super) fn of(limit: &Limit, nodes: u32) -> Option<Self> {
        if limit.fleet_nodes != Some(nodes) || limit.mode == Mode::Off {
            return None;
        }
        Some(Self {
            name: limit.name.clone(),
            cost: limit.cost,
            rate: limit.default?,
            floor: floor_of(nodes),
        })
    }

    /// Returns the name of the budget: other terms are another budget.
    pub(super) fn id(&self) -> BudgetId {
        BudgetId::of(&self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        let Rate {
            burst,
            count,
            period_ns,
        } = self.rate;
        let cost = self.cost.name();
        format!("{cost} {burst} {count} {period_ns} {}", self.name).into_bytes()
    }
}

/// A budget, of which this node has a share.
pub(super) struct Budget {
    pub(super) common: Common,
    limit: LimitId,
    node: Node,
    /// Whether the kernel is known to have no more than the protocol.
    has_begun: bool,
    demand: Demand,
    wanted: Share,
    /// The share that was last put in force, and until when, in nanoseconds.
    in_force: (Parts, u64),
    error: Option<String>,
}

impl Budget {
    pub(super) fn new(common: Common, limit: LimitId, me: &Me, now_ns: u64) -> Self {
        Self {
            node: node(&common, me, now_ns),
            in_force: (common.floor, 0),
            common,
            limit,
            has_begun: false,
            demand: Demand::default(),
            wanted: Share::NONE,
            error: None,
        }
    }

    /// Goes on under a policy by which the limit has that interned id.
    pub(super) const fn is_of(&mut self, limit: LimitId) {
        self.limit = limit;
    }

    /// Looks at what packets want, and asks for it. Without an answer nothing is asked.
    pub(super) fn ask<H: Host>(&mut self, host: &H, me: &Me) -> Vec<Message> {
        let now_ns = host.now_ns();
        let wanted = match host.wanted(self.limit) {
            Ok(wanted) => self.demand.look(wanted, now_ns),
            Err(error) => {
                self.fail(&error, me, now_ns);
                return Vec::new();
            }
        };
        // A quarter more than comes, so that what comes unevenly passes, too.
        let Rate {
            count, period_ns, ..
        } = self.common.rate;
        let part = u128::from(wanted) * u128::from(period_ns) * 5 / 4 / u128::from(count.max(1));
        self.wanted = Share::billionths(u64::try_from(part).unwrap_or(u64::MAX));
        let wanted = self.wanted;
        let asks = self.change(host, me, |node, now_ns, bucket| {
            node.ask(now_ns, wanted, bucket)
        });
        let asks = asks.unwrap_or_default().into_iter();
        asks.map(Message::Ask).collect()
    }

    /// Hears a question; returns the answer.
    pub(super) fn hear_ask<H: Host>(&mut self, host: &H, me: &Me, ask: &Ask) -> Option<Loan> {
        if !self.has_begun {
            return None;
        }
        self.change(host, me, |node, now_ns, bucket| {
            node.hear_ask(now_ns, ask, bucket)
        })?
    }

    /// Hears an answer.
    pub(super) fn hear_loan<H: Host>(&mut self, host: &H, me: &Me, loan: &Loan) {
        if self.has_begun {
            self.change(host, me, |node, now_ns, bucket| {
                node.hear_loan(now_ns, loan, bucket);
            });
        }
    }

    /// Has the protocol change the bucket; `None`: it could not be, and nobody may hear of anything.
    fn change<H: Host, T>(
        &mut self,
        host: &H,
        me: &Me,
        act: impl FnOnce(&mut Node, u64, &mut ShareBucket<'_, H::Lever<'_>>) -> T,
    ) -> Option<T> {
        let lever = host.lever(self.limit)?;
        match self.try_change(&lever, host.now_ns(), act) {
            Ok(done) => {
                self.has_begun = true;
                self.error = None;
                Some(done)
            }
            Err(error) => {
                self.fail(&error, me, host.now_ns());
                None
            }
        }
    }

    fn try_change<L: Lever, T>(
        &mut self,
        lever: &L,
        now_ns: u64,
        act: impl FnOnce(&mut Node, u64, &mut ShareBucket<'_, L>) -> T,
    ) -> Result<T, DatapathError> {
        let mut bucket = ShareBucket::new(lever, self.in_force.1)?;
        let done = act(&mut self.node, now_ns, &mut bucket);
        self.in_force = bucket.finish(self.node.in_force(now_ns).until)?;
        Ok(done)
    }

    /// Begins anew, as after a crash: what the kernel has is not what the protocol says.
    fn fail(&mut self, error: &DatapathError, me: &Me, now_ns: u64) {
        self.node = node(&self.common, me, now_ns);
        self.has_begun = false;
        self.in_force = (self.common.floor, 0);
        self.error = Some(error.to_string());
    }

    /// Tells what this node has of it.
    pub(super) fn status(&self, now_ns: u64) -> FleetShare {
        let share = self.node.in_force(now_ns).share;
        let rate = self.common.rate.of_share(self.in_force.0);
        FleetShare {
            share_billionths: share.in_billionths(),
            wanted_billionths: self.wanted.in_billionths(),
            rate: rate.a_second(),
            burst: rate.burst,
            error: self.error.clone(),
        }
    }
}

fn node(common: &Common, me: &Me, now_ns: u64) -> Node {
    let stakes = me.members.stakes(&common.bytes());
    Node::new(&stakes, me.id, me.boot(), me.terms, now_ns)
}
