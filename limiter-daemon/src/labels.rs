//! Finds limits by the names in requests, and names buckets for responses.

use limiter_common::{
    key::Key,
    limit::{KeyPart, LimitId},
};
use limiter_datapath::kernel::{Datapath, LimitBucket};
use limiter_policy::{
    config::{Scope, nearest::UnknownName},
    policy::{DomainLabels, KeyNames, Limit, Policy, QuestionNames, RequestedName, bucket_id},
};

/// A bucket and its key, as responses name them.
pub(super) struct BucketLabel<'d> {
    pub(super) limit: &'d Limit,
    /// The address, range, subscriber, destination, interface, zone or question.
    pub(super) id: String,
    /// The interface of a bucket with `scope: interface`; `None`: it counts all interfaces.
    pub(super) interface: Option<String>,
}

/// Names a bucket found for an address; `None`: its interface is gone. `question_names`: the texts of the DNS
/// question that found it, as the bucket's key has only a hash.
pub(super) fn bucket_label<'d>(
    datapath: &'d Datapath,
    limit_bucket: &LimitBucket,
    question_names: Option<&QuestionNames>,
) -> Option<BucketLabel<'d>> {
    let limits = &datapath.manifest().policy.limits;
    let key = limit_bucket.key.decode();
    let interface = match key {
        Key::Number(KeyPart::Interface, number) => {
            datapath.interface_name(u32::try_from(number).ok()?)?
        }
        _ => "",
    };
    let names = KeyNames {
        interface,
        zones: Some(datapath.zones()),
        server_names: Some(datapath.server_names_by_number()),
        question_names,
    };
    Some(BucketLabel {
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

/// Returns the texts by which limits name the keys of a question; `None`: the policy has the names itself.
pub(super) fn question_names_of(
    datapath: &Datapath,
    requested_name: &RequestedName,
) -> Option<QuestionNames> {
    let suffixes = &datapath.manifest().policy.public_suffixes;
    let question = requested_name.question()?;
    Some(question.names(&DomainLabels::new(suffixes)))
}

/// Returns the interned id of the limit of that name.
pub(super) fn limit_by_name(policy: &Policy, name: &str) -> Result<LimitId, UnknownName> {
    let found = policy.limits.iter().find(|limit| limit.name == name);
    found.map(|limit| limit.id).ok_or_else(|| {
        let known = policy.limits.iter().map(|limit| limit.name.as_str());
        UnknownName::new("limit", name, known)
    })
}
