//! One limit of a policy.

use std::fmt;

use ipnet::IpNet;
use limiter_common::limit::{Cost, IdFormat, LimitId};

use super::{Match, SubscriberNumber};

/// How fast a bucket refills and how much it holds, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Tokens a full bucket holds.
    pub burst: u64,
    /// Tokens added every `period_ns`.
    pub count: u64,
    /// The period in nanoseconds.
    pub period_ns: u64,
}

/// What a limit does to packets for which it has too few tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It drops them.
    #[default]
    Enforce,
    /// It counts them and lets them pass.
    Observe,
    /// Nothing: it counts no packet at all.
    Off,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Enforce, Self::Observe, Self::Off];

    /// The mode's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
            Self::Off => "off",
        }
    }
}

/// Whom an override is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OverrideId {
    /// The addresses of a prefix, a single address being a /32 or /128; host bits are zero.
    Prefix(IpNet),
    /// A subscriber.
    Subscriber(SubscriberNumber),
}

/// As configuration files have it: a single address without its prefix length.
impl fmt::Display for OverrideId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) if prefix.prefix_len() == prefix.max_prefix_len() => {
                write!(formatter, "{}", prefix.addr())
            }
            Self::Prefix(prefix) => write!(formatter, "{prefix}"),
            Self::Subscriber(number) => write!(formatter, "{number}"),
        }
    }
}

/// Other parameters for one id of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Whom it is for. A prefix shorter than the limit's ids gives each id in it a bucket of
    /// its own with these parameters.
    pub id: OverrideId,
    /// Its parameters.
    pub rate: Rate,
    /// The operator's note from the file.
    pub comment: Option<String>,
}

/// One limit: a named budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name in files and on screens.
    pub name: String,
    /// Its interned id.
    pub id: LimitId,
    /// Whose budget it is.
    pub id_format: IdFormat,
    /// What it counts.
    pub cost: Cost,
    /// Which packets it counts.
    pub matching: Match,
    /// What it does to packets above it.
    pub mode: Mode,
    /// The parameters of every id without an override; `None`: only the overridden ids are
    /// limited.
    pub default: Option<Rate>,
    /// The ids with parameters of their own, in the order of the id.
    pub overrides: Vec<Override>,
}
