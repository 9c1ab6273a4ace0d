//! Zones that no limit tells apart.

use limiter_common::limit::NameKind;
use limiter_policy::policy::{Mode, Policy};

use crate::cli::output;

/// Warns on stderr where zones are not used.
pub(super) fn warn(policy: &Policy) {
    if are_unused(policy) {
        output::warn(&"nothing uses the section `zones`: no limit that is on has `id: zone`");
    }
}

fn are_unused(policy: &Policy) -> bool {
    let mut limits = policy.limits.iter();
    let is_used =
        limits.any(|limit| limit.mode != Mode::Off && limit.name_kind() == Some(NameKind::Zone));
    !policy.zones.is_empty() && !is_used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::policy;

    #[test]
    fn zones_that_nothing_uses() {
        let with = |limit: &str| {
            let text = format!(
                "zones: [example]\nlimits: {{All: {{{limit}, cost: packets, rate: 9/s}}}}\n"
            );
            are_unused(&policy(&text))
        };
        assert!(with("id: total"));
        assert!(with("id: zone, mode: 'off'"));
        assert!(!with("id: zone"));
        assert!(!are_unused(&policy(
            "limits: {All: {id: total, cost: packets, rate: 9/s}}"
        )));
    }
}
