//! Lists that would drop those who should not be locked out.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;

use super::{Guarded, Role, lockout};
use crate::policy::{Mode, Policy, Standing};

/// A list that would have somebody dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blocked {
    list: String,
    /// The prefix of the list that they are in.
    prefix: IpNet,
    /// The limit that blocks the list; `None`: it is blocked as a whole.
    limit: Option<String>,
    address: IpAddr,
    role: Role,
    /// Others of that role, whom it would have dropped as well.
    others: Vec<IpAddr>,
}

/// Who of those guarded would be dropped, and by which list: those of one role whom it is the same
/// for are told together.
pub(super) fn warnings(
    policy: &Policy,
    guarded: impl IntoIterator<Item = Guarded>,
) -> Vec<Blocked> {
    let mut warnings: Vec<Blocked> = Vec::new();
    for guarded in guarded {
        for found in blocked(policy, &guarded) {
            let key = |of: &Blocked| (of.list.clone(), of.limit.clone(), of.role);
            match warnings.iter_mut().find(|told| key(told) == key(&found)) {
                Some(told)
                    if told.address == found.address || told.others.contains(&found.address) => {}
                Some(told) => told.others.push(found.address),
                None => warnings.push(found),
            }
        }
    }
    warnings
}

fn blocked(policy: &Policy, guarded: &Guarded) -> Vec<Blocked> {
    let address = guarded.address;
    let told = |limit: Option<&str>, standing: &Standing<'_>| {
        let list = standing.blocked_by.first()?;
        standing.is_blocked().then_some(())?;
        Some(Blocked {
            list: list.name.clone(),
            prefix: list.prefix_of(address)?,
            limit: limit.map(str::to_owned),
            address,
            role: guarded.why.role(),
            others: Vec::new(),
        })
    };
    let standing = policy.standing_of(address);
    if standing != Standing::default() {
        return told(None, &standing).into_iter().collect();
    }
    let limits = policy.limits.iter();
    let limits =
        limits.filter(|limit| limit.mode == Mode::Enforce && lockout::counts(limit, guarded));
    limits
        .filter_map(|limit| told(Some(&limit.name), &policy.standing_with(limit, address)))
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
        write!(formatter, " would block the {} {address}", self.role.name())?;
        if !self.others.is_empty() {
            write!(formatter, " (and {} more)", self.others.len())?;
        }
        write!(
            formatter,
            ": take it off the list, or put {address} on a list under `exclude`"
        )
    }
}
