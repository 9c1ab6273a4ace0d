//! Lists that would drop those who should not be locked out.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use limiter_policy::policy::{Mode, Policy, Standing};

use super::{Guarded, Role, lockout};

/// A list that would have somebody dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blocked {
    list: String,
    /// The prefix of the list that they are in.
    prefix: IpNet,
    /// The limit that blocks the list; `None`: it is blocked as a whole.
    limit: Option<String>,
    address: IpAddr,
    whose: Whose,
    /// Others of the kind, whom it would have dropped as well.
    others: Vec<IpAddr>,
}

/// Whose address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Other(Role),
    /// This machine's own. Nobody else may use it, but its neighbours' are in the same prefix.
    Own,
}

/// Who of those guarded would be dropped, and by which list: those of one kind whom it is the same
/// for are told together.
pub(super) fn warnings(policy: &Policy, guarded: &[Guarded], own: &[IpAddr]) -> Vec<Blocked> {
    let mut warnings: Vec<Blocked> = Vec::new();
    let own = own
        .iter()
        .filter_map(|address| blocked_by_policy(policy, *address, Whose::Own));
    let guarded = guarded.iter().flat_map(|guarded| blocked(policy, guarded));
    for found in guarded.chain(own) {
        match warnings.iter_mut().find(|told| told.is_alike(&found)) {
            Some(told) if told.address == found.address => {}
            Some(told) if told.others.contains(&found.address) => {}
            Some(told) => told.others.push(found.address),
            None => warnings.push(found),
        }
    }
    warnings
}

impl Blocked {
    fn new(
        address: IpAddr,
        whose: Whose,
        limit: Option<&str>,
        standing: &Standing<'_>,
    ) -> Option<Self> {
        let list = standing.blocked_by.first()?;
        standing.is_blocked().then_some(())?;
        Some(Self {
            list: list.name.clone(),
            prefix: list.prefix_of(address)?,
            limit: limit.map(str::to_owned),
            address,
            whose,
            others: Vec::new(),
        })
    }

    fn is_alike(&self, other: &Self) -> bool {
        self.list == other.list && self.limit == other.limit && self.whose == other.whose
    }
}

fn blocked_by_policy(policy: &Policy, address: IpAddr, whose: Whose) -> Option<Blocked> {
    Blocked::new(address, whose, None, &policy.standing_of(address))
}

fn blocked(policy: &Policy, guarded: &Guarded) -> Vec<Blocked> {
    let address = guarded.address;
    let whose = Whose::Other(guarded.why.role());
    if policy.standing_of(address) != Standing::default() {
        return Vec::from_iter(blocked_by_policy(policy, address, whose));
    }
    policy
        .limits
        .iter()
        .filter(|limit| limit.mode == Mode::Enforce && limit.is_first_part())
        .filter(|limit| lockout::counts(policy, limit, guarded))
        .filter_map(|limit| {
            let standing = policy.standing_with(limit, address);
            Blocked::new(address, whose, Some(&limit.name), &standing)
        })
        .collect()
}

impl fmt::Display for Blocked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            list,
            prefix,
            limit,
            address,
            ..
        } = self;
        write!(formatter, "list {list} has {prefix}, so ")?;
        match limit {
            None => write!(formatter, "it")?,
            Some(limit) => write!(formatter, "limit {limit}")?,
        }
        match self.whose {
            Whose::Other(role) => write!(formatter, " would block the {} {address}", role.name())?,
            Whose::Own => write!(
                formatter,
                " would block this machine's own address {address}"
            )?,
        }
        if !self.others.is_empty() {
            write!(formatter, " (and {} more)", self.others.len())?;
        }
        write!(
            formatter,
            ": take it off the list; or put {address} on a list under `exclude`, but then no limit \
             holds whoever forges it"
        )
    }
}
