//! Finds limits by the names in requests, and names buckets for responses.

use limiter_common::{
    limit::{LimitId, NamedBy},
    owner::Owner,
};
use limiter_datapath::kernel::{Datapath, LimitBucket};
use limiter_policy::{
    config::{Scope, nearest::UnknownName},
    policy::{DomainLabels, Limit, OwnerNames, Policy, QuestionNames, RequestedName, bucket_id},
};

/// A bucket and its owner, as responses name them.
pub(super) struct NamedBucket<'d> {
    pub(super) limit: &'d Limit,
    /// The address, range, subscriber, destination, interface, zone or question.
    pub(super) id: String,
    /// The interface of a bucket with `scope: interface`; `None`: it counts all interfaces.
    pub(super) interface: Option<String>,
}

/// Names a bucket found for an address; `None`: its interface is gone. `asked`: the texts of the DNS question that
/// found it, as the bucket's key has only a hash.
pub(super) fn bucket_named<'d>(
    datapath: &'d Datapath,
    limit_bucket: &LimitBucket,
    asked: Option<&QuestionNames>,
) -> Option<NamedBucket<'d>> {
    let limits = &datapath.manifest().policy.limits;
    let owner = limit_bucket.key.owner();
    let interface = match owner {
        Owner::Number(NamedBy::Interface, number) => {
            datapath.interface_name(u32::try_from(number).ok()?)?
        }
        _ => "",
    };
    let names = OwnerNames {
        interface,
        zones: Some(datapath.zones()),
        server_names: Some(datapath.server_names_by_number()),
        asked,
    };
    Some(NamedBucket {
        limit: limits.get(limit_bucket.limit_index as usize)?,
        id: bucket_id(&limit_bucket.key, &names),
        interface: match datapath.settings().buckets.scope {
            Scope::Host => None,
            Scope::Interface => datapath
                .interface_name(limit_bucket.interface)
                .map(str::to_owned),
        },
    })
}

/// Returns the texts by which limits name the owners of a question; `None`: the policy has the names itself.
pub(super) fn names_of(datapath: &Datapath, asked_for: &RequestedName) -> Option<QuestionNames> {
    let suffixes = &datapath.manifest().policy.public_suffixes;
    let question = asked_for.question()?;
    Some(question.names(&DomainLabels::new(suffixes)))
}

/// Returns the interned id of the limit of that name.
pub(super) fn limit_named(policy: &Policy, name: &str) -> Result<LimitId, UnknownName> {
    let found = policy.limits.iter().find(|limit| limit.name == name);
    found.map(|limit| limit.id).ok_or_else(|| {
        let known = policy.limits.iter().map(|limit| limit.name.as_str());
        UnknownName::new("limit", name, known)
    })
}
