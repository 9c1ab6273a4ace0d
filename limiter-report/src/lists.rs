//! Describes lists: the errors of their files, and their effects on an address or a prefix.

use limiter_policy::{
    lists::{Extent, Extents, Findings, ListState, ListStatus},
    policy::{Mode, Purpose},
};

use crate::render::duration;

/// Describes the errors of a list's files, one line each.
#[must_use]
pub fn list_warnings(list: &ListStatus) -> Vec<String> {
    let mut lines = Vec::new();
    for file in &list.files {
        let path = file.report.path.display();
        let age = file.age_ns.map_or_else(
            || "of unknown age".to_owned(),
            |ns| format!("{} old", duration(ns)),
        );
        match file.state {
            ListState::Stale => lines.push(format!("STALE: {path} is {age}, but in force")),
            ListState::Dropped => lines.push(format!("STALE: {path} is {age}, and not in force")),
            ListState::Ok | ListState::Old => {}
        }
        if let Some(reason) = &file.report.kept_old {
            lines.push(format!(
                "NOT RENEWED: {path} {reason}; its previous content stays in force"
            ));
        }
    }
    lines
}

/// Describes the effects of the lists that contain it, the strongest first.
#[must_use]
pub fn consequences(findings: &Findings) -> Vec<String> {
    let listing = findings.listing;
    let mut lines: Vec<String> = of_policy(findings).into_iter().flatten().collect();
    if listing.excluded == Some(Extent::All) || listing.blocked == Some(Extent::All) {
        // Packets skip all limits.
        return lines;
    }
    for limit in &findings.limits {
        let by = |purpose| lists(findings, purpose, Some(&limit.limit));
        let name = &limit.limit;
        let Extents { excluded, blocked } = limit.listing;
        lines.extend(excluded.map(|extent| {
            let by = by(Purpose::Exclude);
            format!("{}not counted by {name}: it excludes {by}", part(extent))
        }));
        lines.extend(blocked.map(|extent| {
            let (part, by) = (part(extent), by(Purpose::Block));
            let dropped = if limit.mode == Mode::Observe {
                "would be dropped if it enforced"
            } else {
                "is dropped"
            };
            format!(
                "{part}blocked by {name}: it blocks {by}; every packet that it counts {dropped}"
            )
        }));
    }
    lines
}

fn of_policy(findings: &Findings) -> [Option<String>; 4] {
    let Extents { excluded, blocked } = findings.listing;
    let excluded = excluded.map(|extent| {
        let by = lists(findings, Purpose::Exclude, None);
        format!(
            "{}excluded by {by}: never limited, blocked or banned",
            part(extent)
        )
    });
    let blocked = blocked.map(|extent| {
        let by = lists(findings, Purpose::Block, None);
        format!("{}blocked by {by}: every packet is dropped", part(extent))
    });
    let is_for = |purpose| {
        let mut uses = findings.lists.iter().flat_map(|list| &list.used_by);
        uses.any(|found| found.purpose == purpose)
    };
    let never_banned = is_for(Purpose::NeverBan).then(|| {
        let by = lists(findings, Purpose::NeverBan, None);
        format!("never banned: on {by}; limits still apply")
    });
    let proven = is_for(Purpose::Proven).then(|| {
        let by = lists(findings, Purpose::Proven, None);
        format!("proven: on {by}; limits still apply")
    });
    [excluded, blocked, never_banned, proven]
}

const fn part(extent: Extent) -> &'static str {
    match extent {
        Extent::All => "",
        Extent::Part => "some of it is ",
    }
}

/// Names the lists with a given purpose: `list drop`, `lists drop, tor`.
fn lists(findings: &Findings, purpose: Purpose, limit: Option<&str>) -> String {
    let names: Vec<&str> = findings
        .lists
        .iter()
        .filter(|found| {
            let mut uses = found.used_by.iter();
            uses.any(|found| found.purpose == purpose && found.limit.as_deref() == limit)
        })
        .map(|found| found.list.as_str())
        .collect();
    let lists = if names.len() == 1 { "list" } else { "lists" };
    format!("{lists} {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing;

    #[track_caller]
    fn check(uses: &str, of_limit: &str, asked: &str, expected: &[&str]) {
        let configuration = format!(
            "lists: [{{name: drop, cidr: 192.0.2.0/24}}, {{name: us, cidr: 192.0.2.7}}, {{name: tor, \
             cidr: [192.0.2.7, 192.0.2.9]}}]\n{uses}\n\
             limits: {{Web: {{id: ipAddress, cost: packets, burst: 1, count: 1, period: 1s, \
             {of_limit}}}}}\n"
        );
        let policy = testing::policy(&configuration);
        let findings = policy.findings(asked.parse().expect("a prefix"));
        assert_eq!(consequences(&findings), expected, "{configuration} {asked}");
    }

    #[test]
    fn what_follows() {
        let blocked = "blocked by list drop: every packet is dropped";
        let uses = "block: [drop]\nexclude: [us, tor]";
        check(uses, "", "203.0.113.1/32", &[]);
        check(uses, "", "192.0.2.8/32", &[blocked]);
        let excluded = "excluded by lists us, tor: never limited, blocked or banned";
        check(uses, "", "192.0.2.7/32", &[excluded]);
        check(uses, "block: us", "192.0.2.7/32", &[excluded]);
        check(
            uses,
            "",
            "192.0.2.0/24",
            &[
                "some of it is excluded by lists us, tor: never limited, blocked or banned",
                "some of it is blocked by list drop: every packet is dropped",
            ],
        );
        let not_counted = "not counted by Web: it excludes list us";
        check(
            "",
            "exclude: us, block: drop",
            "192.0.2.7/32",
            &[not_counted],
        );
        let of_limit =
            "blocked by Web: it blocks list drop; every packet that it counts is dropped";
        check("", "exclude: us, block: drop", "192.0.2.8/32", &[of_limit]);
        let observed = "blocked by Web: it blocks list drop; every packet that it counts would be \
                        dropped if it enforced";
        check(
            "",
            "block: drop, mode: observe",
            "192.0.2.8/32",
            &[observed],
        );
        check("", "", "192.0.2.8/32", &[]);
    }
}
