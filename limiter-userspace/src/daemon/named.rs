//! Limits by the names that requests give them, and buckets in the words of answers.

use limiter_common::{
    limit::{LimitId, NumberOf},
    owner::Owner,
};
use limiter_datapath::kernel::{Datapath, Holding};
use limiter_policy::{
    config::{Scope, nearest},
    policy::{Limit, Policy, owner_id},
};
use thiserror::Error;

/// Whose bucket it is.
pub(super) struct NamedBucket<'d> {
    pub(super) limit: &'d Limit,
    /// The address, range, subscriber or interface.
    pub(super) id: String,
    /// The interface that it is for; `None`: for all.
    pub(super) interface: Option<String>,
}

/// The bucket that an address was found to have; `None`: it is of an interface that is gone.
pub(super) fn bucket_named<'d>(
    datapath: &'d Datapath,
    holding: &Holding,
) -> Option<NamedBucket<'d>> {
    let limits = &datapath.manifest().policy.limits;
    let owner = holding.key.owner();
    let owning_interface = match owner {
        Owner::Number(NumberOf::Interface, number) => {
            datapath.interface_name(u32::try_from(number).ok()?)?
        }
        _ => "",
    };
    Some(NamedBucket {
        limit: limits.get(holding.slot as usize)?,
        id: owner_id(&owner, owning_interface),
        interface: match datapath.settings().buckets.scope {
            Scope::Host => None,
            Scope::Interface => datapath
                .interface_name(holding.interface)
                .map(str::to_owned),
        },
    })
}

/// No limit has that name.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct UnknownLimit(String);

/// The interned id of the limit of that name.
pub(super) fn limit_named(policy: &Policy, name: &str) -> Result<LimitId, UnknownLimit> {
    let names: Vec<_> = policy.limits.iter().map(|limit| &*limit.name).collect();
    let found = policy.limits.iter().find(|limit| limit.name == name);
    found
        .map(|limit| limit.id)
        .ok_or_else(|| UnknownLimit(nearest::unknown("limit", name, &names)))
}
