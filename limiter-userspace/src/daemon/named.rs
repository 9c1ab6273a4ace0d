//! Limits by the names in requests, and buckets in the words of answers.

use limiter_common::{
    limit::{LimitId, NamedBy},
    owner::Owner,
};
use limiter_datapath::kernel::{Datapath, LimitBucket};
use limiter_policy::{
    config::{Scope, nearest::UnknownName},
    policy::{Limit, Policy, owner_id},
};

/// A bucket and its owner, as answers name them.
pub(super) struct NamedBucket<'d> {
    pub(super) limit: &'d Limit,
    /// The address, range, subscriber or interface.
    pub(super) id: String,
    /// The interface whose packets it counts; `None`: all.
    pub(super) interface: Option<String>,
}

/// Names the bucket that an address was found to have; `None`: its interface is gone.
pub(super) fn bucket_named<'d>(
    datapath: &'d Datapath,
    limit_bucket: &LimitBucket,
) -> Option<NamedBucket<'d>> {
    let limits = &datapath.manifest().policy.limits;
    let owner = limit_bucket.key.owner();
    let owning_interface = match owner {
        Owner::Number(NamedBy::Interface, number) => {
            datapath.interface_name(u32::try_from(number).ok()?)?
        }
        _ => "",
    };
    Some(NamedBucket {
        limit: limits.get(limit_bucket.limit_index as usize)?,
        id: match owner {
            Owner::Number(NamedBy::Zone, number) => datapath.zone(number)?.to_string(),
            Owner::Number(NamedBy::ServerName, number) => datapath.server_name(number)?.to_string(),
            _ => owner_id(&owner, owning_interface),
        },
        interface: match datapath.settings().buckets.scope {
            Scope::Host => None,
            Scope::Interface => datapath
                .interface_name(limit_bucket.interface)
                .map(str::to_owned),
        },
    })
}

/// Returns the interned id of the limit of that name.
pub(super) fn limit_named(policy: &Policy, name: &str) -> Result<LimitId, UnknownName> {
    let found = policy.limits.iter().find(|limit| limit.name == name);
    found.map(|limit| limit.id).ok_or_else(|| {
        let known = policy.limits.iter().map(|limit| limit.name.as_str());
        UnknownName::new("limit", name, known)
    })
}
