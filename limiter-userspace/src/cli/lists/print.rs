//! Prints lists as text.

use std::io::Write;

use limiter_policy::lists::ListStatus;
use limiter_report::{
    lists::list_warnings,
    render::{count, duration, table},
};

use super::test::uses;

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
