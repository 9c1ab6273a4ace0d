//! Events of incidents, and how they are logged.

use std::time::Duration;

use limiter_common::{address::Address, limit::LimitId, owner::Owner};
use limiter_policy::policy::{OwnerNames, Policy, owner_id};
use tracing::{info, warn};

use crate::{
    daemon::offenders::{limit_name, prefix_length},
    protocol::Grouping,
};

/// A source of dropped packets, and the limit that drops them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    pub(super) limit: LimitId,
    pub(super) source: Source,
}

/// The source of dropped packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// An address's.
    Address(Address),
    /// Those of many addresses of an IPv4 /24 or IPv6 /64, whose first address this is.
    Range(Address),
    /// Those of unknown sources, or of many that are seldom dropped.
    Any,
}

/// Something to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Packets begin to be dropped.
    Began {
        subject: Subject,
        /// How many addresses send them; 0: unknown.
        addresses: u64,
        /// How many packets were dropped so far, at least.
        drops: u64,
    },
    /// No packet is dropped any more.
    Ended {
        subject: Subject,
        /// How many packets were dropped.
        drops: u64,
        /// Whether there may have been more.
        is_lower_bound: bool,
        /// From the first drop to the last.
        duration_ns: u64,
    },
    /// So many more sources began to be dropped, without a line for each.
    More { sources: u64 },
}

impl Source {
    /// Returns the range of an address.
    pub(super) const fn range_of(address: Address) -> Self {
        Self::Range(address.masked(prefix_length(Grouping::Range, address.family)))
    }

    fn named(self) -> (Option<String>, Option<String>) {
        let name = |by, address: Address| {
            let owner = Owner::Source {
                address,
                prefix_length: prefix_length(by, address.family),
            };
            Some(owner_id(&owner, &OwnerNames::default()))
        };
        match self {
            Self::Address(address) => (name(Grouping::Address, address), None),
            Self::Range(address) => (None, name(Grouping::Range, address)),
            Self::Any => (None, None),
        }
    }
}

impl Event {
    /// Whether sources begin to be dropped.
    pub(super) const fn is_beginning(&self) -> bool {
        !matches!(self, Self::Ended { .. })
    }

    /// Logs the event, with the names that limits have in this policy. Returns it in words.
    pub(super) fn log(&self, policy: &Policy) -> String {
        match self {
            Self::Began {
                subject,
                addresses,
                drops,
            } => {
                let (address, range, limit) = subject.named(policy);
                let message = match (&address, &range) {
                    (Some(address), _) => format!("{limit} began to drop {address}"),
                    (_, Some(range)) => {
                        format!("{limit} began to drop {range}: {addresses} addresses")
                    }
                    _ => format!("{limit} began to drop"),
                };
                warn!(limit, address, range, addresses, drops, "{message}");
                message
            }
            Self::Ended {
                subject,
                drops,
                is_lower_bound,
                duration_ns,
            } => {
                let (address, range, limit) = subject.named(policy);
                let whom = address.as_ref().or(range.as_ref());
                let whom = whom.map_or_else(String::new, |whom| format!(" {whom}"));
                let at_least = if *is_lower_bound { "at least " } else { "" };
                let duration = Duration::from_nanos(*duration_ns);
                let message = format!(
                    "{limit} no longer drops{whom}: {at_least}{drops} packets in {duration:.1?}"
                );
                info!(
                    limit,
                    address, range, drops, is_lower_bound, duration_ns, "{message}"
                );
                message
            }
            Self::More { sources } => {
                warn!(
                    sources,
                    "and {sources} more sources began to be dropped: see `limiter offenders`"
                );
                format!("and {sources} more sources began to be dropped")
            }
        }
    }
}

impl Subject {
    /// Returns the address, the range, and the limit's name.
    fn named(&self, policy: &Policy) -> (Option<String>, Option<String>, String) {
        let (address, range) = self.source.named();
        // A limit that has left the policy meanwhile has no name.
        let limit = limit_name(policy, self.limit.0);
        let limit = limit.unwrap_or_else(|| format!("limit {}", self.limit.0));
        (address, range, limit)
    }
}
