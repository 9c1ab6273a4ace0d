//! Finds the lists that contain all of a prefix.

use ipnet::IpNet;
use limiter_policy::policy::{List, Policy};

/// Returns the first of the named lists that has all addresses of a prefix; `None`: none has.
pub(super) fn list_of_all(policy: &Policy, names: &[String], prefix: IpNet) -> Option<String> {
    let mut lists = names.iter().filter_map(|name| policy.list(name));
    let has = |list: &&List| {
        let listed = list.prefix_of(prefix.network());
        listed.is_some_and(|listed| listed.contains(&prefix))
    };
    lists.find(has).map(|list| list.name.clone())
}

/// Returns the list that proves all of a prefix; `None`: none does.
pub(super) fn proven_by(policy: &Policy, prefix: IpNet) -> Option<String> {
    let standing = policy.standing.as_ref()?;
    list_of_all(policy, &standing.proven, prefix)
}
