//! Lists that would drop guarded addresses.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use limiter_policy::policy::{Listing, Mode, Policy};

use super::{Role, guarded::GuardedAddress, lockout};

/// A list that would drop a guarded address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockWarning {
    list: String,
    /// The prefix of the list that contains the address.
    prefix: IpNet,
    /// The limit that blocks the list; `None`: all packets from the list are blocked.
    limit: Option<String>,
    address: IpAddr,
    role: AddressRole,
    /// Other addresses with the same role that it would drop too.
    others: Vec<IpAddr>,
}

/// The role of an address that a list drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressRole {
    Other(Role),
    /// An address of this machine. No other host uses it, but its neighbours have the same prefix.
    Own,
}

/// Returns the guarded addresses that lists would drop. Addresses with the same role, list and limit share a
/// warning.
pub(super) fn warnings(
    policy: &Policy,
    guarded: &[GuardedAddress],
    own: &[IpAddr],
) -> Vec<BlockWarning> {
    let mut warnings: Vec<BlockWarning> = Vec::new();
    let own = own
        .iter()
        .filter_map(|address| blocked_by_policy(policy, *address, AddressRole::Own));
    let guarded = guarded
        .iter()
        .flat_map(|guarded| block_warnings(policy, guarded));
    for found in guarded.chain(own) {
        match warnings
            .iter_mut()
            .find(|reported| reported.is_alike(&found))
        {
            Some(reported) if reported.address == found.address => {}
            Some(reported) if reported.others.contains(&found.address) => {}
            Some(reported) => reported.others.push(found.address),
            None => warnings.push(found),
        }
    }
    warnings
}

impl BlockWarning {
    fn new(
        address: IpAddr,
        role: AddressRole,
        limit: Option<&str>,
        listing: &Listing<'_>,
    ) -> Option<Self> {
        let list = listing.blocked_by.first()?;
        listing.is_blocked().then_some(())?;
        Some(Self {
            list: list.name.clone(),
            prefix: list.prefix_of(address)?,
            limit: limit.map(str::to_owned),
            address,
            role,
            others: Vec::new(),
        })
    }

    fn is_alike(&self, other: &Self) -> bool {
        self.list == other.list && self.limit == other.limit && self.role == other.role
    }
}

fn blocked_by_policy(policy: &Policy, address: IpAddr, role: AddressRole) -> Option<BlockWarning> {
    BlockWarning::new(address, role, None, &policy.listing_of(address))
}

fn block_warnings(policy: &Policy, guarded: &GuardedAddress) -> Vec<BlockWarning> {
    let address = guarded.address;
    let role = AddressRole::Other(guarded.why.role());
    if policy.listing_of(address) != Listing::default() {
        return Vec::from_iter(blocked_by_policy(policy, address, role));
    }
    policy
        .limits
        .iter()
        .filter(|limit| limit.mode == Mode::Enforce && limit.is_first_part())
        .filter(|limit| lockout::counts(policy, limit, guarded))
        .filter_map(|limit| {
            let listing = policy.listing_with(limit, address);
            BlockWarning::new(address, role, Some(&limit.name), &listing)
        })
        .collect()
}

impl fmt::Display for BlockWarning {
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
        match self.role {
            AddressRole::Other(role) => {
                write!(formatter, " would block the {} {address}", role.name())?;
            }
            AddressRole::Own => write!(
                formatter,
                " would block this machine's own address {address}"
            )?,
        }
        if !self.others.is_empty() {
            write!(formatter, " (and {} more)", self.others.len())?;
        }
        write!(
            formatter,
            ": take it off the list; or put {address} on a list under `exclude`, but then anybody \
             who forges it escapes every limit"
        )
    }
}
