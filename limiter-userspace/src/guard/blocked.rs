//! What lists mean for those who should not be locked out.

use std::{fmt, net::IpAddr};

use super::{Guarded, Role, Warning, lockout};
use crate::policy::{Limit, Policy, Standing};

/// What would lock somebody out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lockout {
    /// A list has them, and is blocked.
    Blocked(Blocked),
    /// A limit would hold them below what can be worked with.
    Held(Warning),
}

impl fmt::Display for Lockout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked(blocked) => blocked.fmt(formatter),
            Self::Held(warning) => warning.fmt(formatter),
        }
    }
}

/// Somebody whom a list blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The list that has them.
    pub list: String,
    /// The limit that blocks it, for the packets that the limit counts; `None`: whatever they send
    /// is dropped.
    pub limit: Option<String>,
    /// Who would be dropped.
    pub address: IpAddr,
    /// What they are to this machine.
    pub role: Role,
}

impl Blocked {
    /// `None`: nobody is blocked.
    fn new(standing: &Standing<'_>, limit: Option<&Limit>, guarded: &Guarded) -> Option<Self> {
        let list = standing.blocked_by.first()?;
        standing.is_blocked().then(|| Self {
            list: list.name.clone(),
            limit: limit.map(|limit| limit.name.clone()),
            address: guarded.address,
            role: guarded.why.role(),
        })
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list, address, .. } = self;
        let role = self.role.name();
        write!(
            formatter,
            "the list {list} would block the {role} {address}"
        )?;
        if let Some(limit) = &self.limit {
            write!(formatter, " for the limit {limit}")?;
        }
        write!(formatter, ": put {address} on a list that 'exclude' names")
    }
}

/// Who of those guarded is blocked, and what limits would do to the others who are not excluded.
pub(super) fn lockouts(policy: &Policy, guarded: &[Guarded]) -> Vec<Lockout> {
    let mut blocked: Vec<Blocked> = Vec::new();
    let mut limited = Vec::new();
    for guarded in guarded {
        let standing = policy.standing_of(guarded.address);
        let found: Vec<Blocked> = if standing == Standing::default() {
            limited.push(*guarded);
            let limits = policy.limits.iter();
            let counting = limits.filter(|limit| lockout::counts(limit, guarded));
            counting
                .filter_map(|limit| {
                    let standing = policy.standing_with(limit, guarded.address);
                    Blocked::new(&standing, Some(limit), guarded)
                })
                .collect()
        } else {
            Blocked::new(&standing, None, guarded).into_iter().collect()
        };
        for one in found {
            // Somebody may have several sessions.
            if !blocked.contains(&one) {
                blocked.push(one);
            }
        }
    }
    let held = lockout::warnings(policy, limited);
    let blocked = blocked.into_iter().map(Lockout::Blocked);
    blocked.chain(held.into_iter().map(Lockout::Held)).collect()
}
