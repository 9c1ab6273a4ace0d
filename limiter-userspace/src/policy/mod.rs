//! The policy: a whole configuration of limits, validated and interned.

mod compile;

use ipnet::IpNet;
use limiter_common::limit::{Cost, IdFormat, LimitId};

pub use self::compile::{CompileError, CompiledPolicy};

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

/// Other parameters for one id of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The id: an address as a /32 or /128, or a range; host bits are zero.
    pub id: IpNet,
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
    /// The parameters of every id without an override; `None`: only the overridden ids are
    /// limited.
    pub default: Option<Rate>,
    /// The ids with parameters of their own, in the order of the address.
    pub overrides: Vec<Override>,
}

/// A whole configuration of limits, in the order of their interned ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The limits.
    pub limits: Vec<Limit>,
}

impl Policy {
    /// How many overrides all limits have together.
    #[must_use]
    pub fn override_count(&self) -> usize {
        self.limits.iter().map(|limit| limit.overrides.len()).sum()
    }
}

impl Limit {
    /// The override that holds for an address: of several prefixes the longest.
    #[must_use]
    pub fn override_of(&self, address: std::net::IpAddr) -> Option<&Override> {
        self.overrides
            .iter()
            .filter(|other| other.id.contains(&address))
            .max_by_key(|other| other.id.prefix_len())
    }
}
