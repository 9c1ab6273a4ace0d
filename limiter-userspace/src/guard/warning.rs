//! What there is to warn of, in words.

use std::{fmt, net::IpAddr};

use limiter_common::{limit::Cost, strategy::Strategy};
use limiter_policy::policy::{OverrideId, Rate};

/// A limit that would hold somebody below what can be worked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The limit's name.
    pub limit: String,
    /// What it counts.
    pub cost: Cost,
    /// Who would be held.
    pub address: IpAddr,
    /// What they are to this machine.
    pub role: Role,
    /// Others of that role, whom it would hold to the same.
    pub others: Vec<IpAddr>,
    /// Whose budget theirs is.
    pub budget: Budget,
    /// The limit's strategy.
    pub strategy: Strategy,
    /// The rate that holds for them.
    pub rate: Rate,
    /// The least that can be worked with.
    pub least: Rate,
}

/// What somebody is to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The peer of an SSH session.
    SshPeer,
    /// A default gateway.
    Gateway,
}

/// Whose budget it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// The address's own.
    Own,
    /// That of a range or a subscriber, which others belong to too.
    Shared(OverrideId),
    /// That of the interface, which is everybody's.
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
        match self.budget {
            Budget::Own => {}
            Budget::Shared(OverrideId::Prefix(prefix)) => {
                write!(formatter, ", with all of {prefix} together,")?;
            }
            Budget::Shared(OverrideId::Subscriber(number)) => {
                write!(formatter, ", with all of subscriber {number} together,")?;
            }
            Budget::Total => write!(formatter, ", with everybody together,")?,
        }
        write!(
            formatter,
            " to {rate} in {cost}, where it takes at least {least}: "
        )?;
        match self.budget {
            Budget::Own => write!(formatter, "give {address} an override with room"),
            Budget::Shared(id) => write!(formatter, "give {id} an override with room"),
            Budget::Total => write!(
                formatter,
                "give the limit room, or a match that spares them"
            ),
        }
    }
}
