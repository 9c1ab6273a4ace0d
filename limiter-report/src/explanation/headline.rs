//! The first line: whether packets of an address pass now, why, and until when.

use limiter_policy::{
    lists::{Extent, Extents},
    policy::Mode,
    text::short,
};
use limiter_protocol::{Explanation, LimitExplanation, bans::BanStatus};

use crate::{lists::consequences, render::duration};

/// Returns the treatment of an address in one line.
#[must_use]
pub fn headline(explanation: &Explanation) -> String {
    format!("{} {}", explanation.address, fate(explanation))
}

/// Describes a packet's fate, by the first rule that decides on it.
fn fate(explanation: &Explanation) -> String {
    let Extents { excluded, blocked } = explanation.lists.listing;
    if excluded == Some(Extent::All) || blocked == Some(Extent::All) {
        let verdict = if excluded.is_some() {
            "passes"
        } else {
            "is dropped"
        };
        // The first consequence names the list and, after a colon, the effect.
        let why = consequences(&explanation.lists).into_iter().next();
        let why = why.unwrap_or_default();
        let why = why.split(": ").next().unwrap_or_default();
        return format!("{verdict}: {why}, until the configuration or the list changes");
    }
    let mut bans = explanation.bans.iter();
    if let Some(ban) = bans.find(|ban| ban.excluded_by.is_none()) {
        return format!("is dropped: {}", ban_text(ban));
    }
    let blocks = |mode| {
        let mut limits = explanation.lists.limits.iter();
        let found = limits.find(|limit| limit.listing.blocked.is_some() && limit.mode == mode);
        found.map(|limit| &limit.limit)
    };
    if let Some(limit) = blocks(Mode::Enforce) {
        return format!("is dropped where {limit} counts it: it is on a list that {limit} blocks");
    }
    if let Some(sieve) = explanation.sieves.iter().find(|sieve| sieve.rejected) {
        return format!(
            "is dropped: sieve {} rejects its list while the pressure lasts",
            sieve.sieve
        );
    }
    let refusing = |mode| {
        let limits = explanation.limits.iter();
        let limits = limits.filter(|limit| limit.mode == mode && !limit.other_standing);
        limits
            .map(|limit| (refused_for(limit), limit))
            .max_by_key(|(ns, _)| *ns)
            .filter(|(ns, _)| *ns > 0)
    };
    if let Some((ns, limit)) = refusing(Mode::Enforce) {
        return refusal_text(limit, ns);
    }
    if explanation.limits.is_empty() {
        return "passes: no limit applies to it".to_owned();
    }
    match refusing(Mode::Observe) {
        None => "passes: it is within its limits".to_owned(),
        Some((_, limit)) => format!(
            "passes: it is within its limits; {} would drop it, but only observes",
            limit.limit
        ),
    }
}

fn ban_text(ban: &BanStatus) -> String {
    let by = ban.by();
    let until = match (ban.ends_in_ns, ban.until) {
        (Some(ns), Some(until)) => format!("for {} more, until {until:.0}", duration(ns)),
        _ => "until the ban is lifted".to_owned(),
    };
    format!("banned by {by} as {}, {until}", short(ban.prefix))
}

/// Returns how long a limit refuses packets from now on, in nanoseconds.
fn refused_for(limit: &LimitExplanation) -> u64 {
    let reserve = limit.reserve.as_ref().filter(|reserve| !reserve.passes);
    let reserve = reserve.map_or(0, |reserve| reserve.retry_in_ns);
    limit.retry_in_ns.max(reserve)
}

fn refusal_text(limit: &LimitExplanation, ns: u64) -> String {
    const RESERVED: &str = "the rest is reserved for sources that are better known";
    let name = &limit.limit;
    let counted = match &limit.matching {
        None => String::new(),
        Some(matching) => format!(" (it counts {matching})"),
    };
    let is_empty = limit.retry_in_ns > 0;
    let of = match &limit.interface {
        Some(interface) => format!(" on {interface}"),
        None => String::new(),
    };
    if limit.connections.is_some() {
        let why = if is_empty {
            "no more may be open"
        } else {
            RESERVED
        };
        return format!(
            "no connection is let in by {name}{of}{counted}: {why}, until another one ends"
        );
    }
    let why = if is_empty {
        "its bucket is empty"
    } else {
        RESERVED
    };
    format!(
        "is dropped by {name}{of}{counted}: {why}, for {} more",
        duration(ns)
    )
}

#[cfg(test)]
mod tests {
    use limiter_policy::{lists::Findings, policy::bans::Origin};

    use super::*;
    use limiter_policy::testing::policy;
    use limiter_protocol::ReserveExplanation;
    use limiter_protocol::testing;

    fn explanation() -> Explanation {
        testing::explanation("192.0.2.1")
    }

    fn passing() -> Explanation {
        let mut explanation = explanation();
        explanation.limits[0].retry_in_ns = 0;
        explanation.limits[0].remaining = 1;
        explanation
    }

    fn lists(configuration: &str) -> Findings {
        let asked = "192.0.2.1/32".parse().unwrap();
        policy(configuration).findings(asked)
    }

    #[test]
    fn a_limit_decides() {
        let mut empty = explanation();
        assert_eq!(
            headline(&empty),
            "192.0.2.1 is dropped by PacketsPerIPAddress: its bucket is empty, for 250 µs more"
        );
        empty.limits[0].matching = Some("udp to port 53".to_owned());
        empty.limits[0].interface = Some("eth0".to_owned());
        assert_eq!(
            headline(&empty),
            "192.0.2.1 is dropped by PacketsPerIPAddress on eth0 (it counts udp to port 53): its \
             bucket is empty, for 250 µs more"
        );
        empty.limits[0].mode = Mode::Observe;
        assert_eq!(
            headline(&empty),
            "192.0.2.1 passes: it is within its limits; PacketsPerIPAddress would drop it, but \
             only observes"
        );
        let mut reserved = passing();
        reserved.limits[0].reserve = Some(ReserveExplanation {
            tokens: 100,
            passes: false,
            retry_in_ns: 2_000,
        });
        assert_eq!(
            headline(&reserved),
            "192.0.2.1 is dropped by PacketsPerIPAddress: the rest is reserved for sources that \
             are better known, for 2 µs more"
        );
        assert_eq!(
            headline(&passing()),
            "192.0.2.1 passes: it is within its limits"
        );
        let mut unlimited = passing();
        unlimited.limits.clear();
        assert_eq!(
            headline(&unlimited),
            "192.0.2.1 passes: no limit applies to it"
        );
    }

    #[test]
    fn a_list_or_a_ban_decides_before() {
        const LIMIT: &str = "limits: {PacketsPerIPAddress: {rate: 10/s}}";
        let mut explanation = explanation();
        explanation.bans = vec![BanStatus {
            prefix: "192.0.2.0/24".parse().unwrap(),
            origin: Origin::OPERATOR,
            limit: None,
            reason: String::new(),
            since: jiff::Timestamp::UNIX_EPOCH,
            until: None,
            ends_in_ns: None,
            times: 1,
            hits: 1_234,
            hit_bytes: 74_040,
            excluded_by: None,
        }];
        assert_eq!(
            headline(&explanation),
            "192.0.2.1 is dropped: banned by an operator as 192.0.2.0/24, until the ban is lifted"
        );
        explanation.bans[0].ends_in_ns = Some(60_000_000_000);
        explanation.bans[0].until = Some("2026-01-02T03:04:05Z".parse().unwrap());
        assert!(headline(&explanation).ends_with("for 1 min more, until 2026-01-02T03:04:05Z"));
        explanation.lists = lists(&format!("{LIMIT}\nblock: 192.0.2.0/24"));
        assert_eq!(
            headline(&explanation),
            "192.0.2.1 is dropped: blocked by list (block), until the configuration or the list \
             changes"
        );
        explanation.lists = lists(&format!("{LIMIT}\nexclude: 192.0.2.1"));
        assert_eq!(
            headline(&explanation),
            "192.0.2.1 passes: excluded by list (exclude), until the configuration or the list \
             changes"
        );
        // A ban of an excluded address has no effect.
        let mut excluded = passing();
        excluded.bans.clone_from(&explanation.bans);
        excluded.bans[0].excluded_by = Some("ours".to_owned());
        assert!(headline(&excluded).contains("passes"));
        let mut blocked = passing();
        blocked.lists = lists("limits: {PacketsPerIPAddress: {rate: 10/s, block: 192.0.2.1}}");
        assert_eq!(
            headline(&blocked),
            "192.0.2.1 is dropped where PacketsPerIPAddress counts it: it is on a list that \
             PacketsPerIPAddress blocks"
        );
    }
}
