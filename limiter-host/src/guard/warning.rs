//! Warnings in words.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use limiter_common::{limit::Cost, strategy::Strategy};
use limiter_policy::policy::{Rate, SubscriberNumber};

/// A limit that would hold an address below a workable rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The limit's name.
    pub limit: String,
    /// The unit it counts.
    pub cost: Cost,
    /// The held address.
    pub address: IpAddr,
    /// The role of the address for this machine.
    pub role: Role,
    /// Other addresses in this role, held to the same rate.
    pub others: Vec<IpAddr>,
    /// The key of the budget they spend.
    pub budget_key: BudgetKey,
    /// The limit's strategy.
    pub strategy: Strategy,
    /// The rate that applies to them.
    pub rate: Rate,
    /// The least workable rate.
    pub least: Rate,
}

/// The role of an address for this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The peer of an SSH session.
    SshPeer,
    /// A default gateway.
    Gateway,
}

/// The key of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetKey {
    /// The address itself.
    Own,
    /// A range, shared with other addresses.
    Range(IpNet),
    /// A subscriber, with other addresses.
    Subscriber(SubscriberNumber),
    /// The interface, shared by all sources.
    Total,
}

impl Role {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SshPeer => "SSH peer",
            Self::Gateway => "default gateway",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, address, .. } = self;
        let [rate, least] = [self.rate, self.least].map(|rate| rate.shown(self.strategy));
        let (role, cost) = (self.role.name(), self.cost.name());
        write!(formatter, "limit {limit} would hold the {role} {address}")?;
        if !self.others.is_empty() {
            write!(formatter, " (and {} more)", self.others.len())?;
        }
        match self.budget_key {
            BudgetKey::Own => {}
            BudgetKey::Range(prefix) => {
                write!(formatter, ", with all of {prefix} together,")?;
            }
            BudgetKey::Subscriber(number) => {
                write!(formatter, ", with all of subscriber {number} together,")?;
            }
            BudgetKey::Total => write!(formatter, ", with everybody together,")?,
        }
        write!(
            formatter,
            " to {rate} in {cost}, but it needs at least {least}: "
        )?;
        match self.budget_key {
            BudgetKey::Own => write!(formatter, "give {address} an override with room"),
            BudgetKey::Range(prefix) => {
                write!(formatter, "give {prefix} an override with room")
            }
            BudgetKey::Subscriber(number) => {
                write!(formatter, "give {number} an override with room")
            }
            BudgetKey::Total => write!(
                formatter,
                "give the limit room, or a match that spares them"
            ),
        }
    }
}
