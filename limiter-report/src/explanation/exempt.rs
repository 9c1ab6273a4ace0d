//! Describes the exempt packets of an address: segments of connections that this host opened.

use limiter_policy::lists::Extent;
use limiter_protocol::Explanation;

use crate::render::counted;

/// Describes the treatment of this host's own connections to the address; `None`: there are none, or a list
/// excludes the address anyway.
pub(super) fn own_connections(explanation: &Explanation) -> Option<String> {
    let count = explanation.own_connections.filter(|count| *count > 0)?;
    let connections = counted(usize::try_from(count).unwrap_or(usize::MAX), "connection");
    let exempt = format!("TCP segments of the {connections} that this host began to it");
    let listing = explanation.lists.listing;
    if listing.excluded == Some(Extent::All) {
        return None;
    }
    let stronger = if listing.blocked == Some(Extent::All) {
        Some("the list")
    } else {
        let mut bans = explanation.bans.iter();
        let holds = bans.any(|ban| ban.excluded_by.is_none());
        holds.then_some("the ban")
    };
    Some(match stronger {
        Some(stronger) => format!("{stronger} drops {exempt}, too"),
        None => format!("exempt: no limit and no sieve refuses {exempt}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::policy;
    use limiter_protocol::testing;

    #[test]
    fn own_connections_are_exempt_from_limits_alone() {
        let mut explanation = testing::explanation("192.0.2.1");
        assert_eq!(own_connections(&explanation), None);
        explanation.own_connections = Some(0);
        assert_eq!(own_connections(&explanation), None);
        explanation.own_connections = Some(1);
        assert_eq!(
            own_connections(&explanation).as_deref(),
            Some(
                "exempt: no limit and no sieve refuses TCP segments of the 1 connection that this \
                 host began to it"
            )
        );
        explanation.own_connections = Some(1_234);
        let asked = "192.0.2.1/32".parse().unwrap();
        let listed = |list: &str| {
            let configuration = format!("limits: {{PacketsPerIPAddress: {{rate: 10/s}}}}\n{list}");
            policy(&configuration).findings(asked)
        };
        explanation.lists = listed("block: 192.0.2.0/24");
        assert_eq!(
            own_connections(&explanation).as_deref(),
            Some(
                "the list drops TCP segments of the 1 234 connections that this host began to it, \
                 too"
            )
        );
        explanation.lists = listed("exclude: 192.0.2.1");
        assert_eq!(own_connections(&explanation), None);
    }
}
