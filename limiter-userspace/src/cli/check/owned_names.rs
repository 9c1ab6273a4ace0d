//! Warns of configured zones or server names that no limit uses.

use limiter_common::limit::{IdFormat, NameKind};
use limiter_policy::policy::{Limit, Mode, Policy};

use crate::cli::output;

pub(super) fn warn(policy: &Policy) {
    for (section, id) in unused(policy) {
        output::warn(&format_args!(
            "nothing uses the section `{section}`: no limit that is on has `id: {id}`"
        ));
    }
}

/// Returns the unused sections, with the ids that would use them.
fn unused(policy: &Policy) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_used = |is_by: fn(&Limit) -> bool| {
        let mut limits = policy.limits.iter();
        limits.any(|limit| limit.mode != Mode::Off && is_by(limit))
    };
    let zones =
        !policy.zones.is_empty() && !is_used(|limit| limit.name_kind() == Some(NameKind::Zone));
    let server_names = !policy.server_names.is_empty()
        && !is_used(|limit| limit.id_format == IdFormat::ServerName);
    let zones = zones.then_some(("zones", "zone"));
    let server_names = server_names.then_some(("server-names", "server-name"));
    zones.into_iter().chain(server_names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::policy;

    #[test]
    fn names_that_nothing_uses() {
        let with = |limit: &str| {
            let text = format!(
                "zones: [example]\nserver-names: [example]\n\
                 limits: {{All: {{{limit}, cost: packets, rate: 9/s}}}}\n"
            );
            let policy = policy(&text);
            unused(&policy)
                .map(|(section, _)| section)
                .collect::<Vec<_>>()
        };
        assert_eq!(with("id: total"), ["zones", "server-names"]);
        assert_eq!(with("id: zone, mode: 'off'"), ["zones", "server-names"]);
        assert_eq!(with("id: zone"), ["server-names"]);
        assert_eq!(with("id: server-name"), ["zones"]);
        let without = policy("limits: {All: {id: total, cost: packets, rate: 9/s}}");
        assert_eq!(unused(&without).count(), 0);
    }
}
