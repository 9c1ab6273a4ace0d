//! Prints lists as text.

use std::io::Write;

use limiter_policy::lists::{ListState, ListStatus};

use super::test::uses;
use crate::cli::render::{count, duration, table};

/// Prints a table of all lists, and the errors of their files.
pub(super) fn print(out: &mut impl Write, lists: &[ListStatus]) -> anyhow::Result<()> {
    let header = [
        "list",
        "IPv4",
        "IPv6",
        "used by",
        "files",
        "age",
        "max-age",
        "bad lines",
        "state",
    ];
    let none = || "–".to_owned();
    let rows = lists.iter().map(|list| {
        let files = list.files.iter();
        let files: Vec<_> = files
            .map(|file| file.report.path.display().to_string())
            .collect();
        [
            list.list.clone(),
            count(list.ipv4_prefixes),
            count(list.ipv6_prefixes),
            uses(&list.used_by),
            if files.is_empty() {
                none()
            } else {
                files.join(", ")
            },
            list.age_ns.map_or_else(none, duration),
            list.max_age_ns.map_or_else(none, duration),
            count(list.bad_lines),
            list.state.name().to_owned(),
        ]
    });
    writeln!(out, "{}", table(header, [1, 2, 5, 6, 7], rows))?;
    for line in lists.iter().flat_map(list_warnings) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Describes the errors of a list's files, one line each.
pub(crate) fn list_warnings(list: &ListStatus) -> Vec<String> {
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
