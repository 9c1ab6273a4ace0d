//! The names of a capture as text.

use std::io::Write as _;

use limiter_offline::names::Summary;
use limiter_report::render::{count, counted, table};

use crate::cli::output::stdout;

/// The longest name shown whole. Of a longer name the end is shown, which tells its owner.
const LONGEST: usize = 40;

/// Prints the names that a capture's clients ask for, `most` of them.
pub(super) fn summary(summary: &Summary, most: usize) -> anyhow::Result<()> {
    let (names, unread) = (summary.names(), summary.unread());
    let mut out = stdout();
    if names.is_empty() {
        writeln!(out, "No client asks for a name that can be read.")?;
    } else {
        let rows = names.iter().take(most).map(|row| {
            [
                shown(&row.name),
                row.how.to_owned(),
                count(row.flows),
                count(row.packets),
                count(row.bytes),
            ]
        });
        let header = ["name", "told by", "flows", "packets", "bytes"];
        writeln!(out, "{}", table(header, [2, 3, 4], rows))?;
        if let Some(others) = names.len().checked_sub(most).filter(|others| *others > 0) {
            writeln!(out, "and {}", counted(others, "other name"))?;
        }
    }
    if !unread.is_empty() {
        let rows = unread.iter().map(|row| {
            [
                row.reason.to_owned(),
                count(row.flows),
                count(row.packets),
                count(row.bytes),
                row.meaning.to_owned(),
            ]
        });
        let header = ["without a name", "flows", "packets", "bytes", "meaning"];
        writeln!(out, "\n{}", table(header, [1, 2, 3], rows))?;
    }
    for remark in remarks(summary) {
        writeln!(out, "\n{remark}")?;
    }
    Ok(())
}

fn remarks(summary: &Summary) -> Vec<String> {
    let outer = summary.names().iter().map(|row| row.may_be_outer).sum();
    let remarks = [
        (
            outer,
            "hellos offer ECH: their names may be the names of servers in front",
        ),
        (summary.silent, "flows had headers alone"),
        (summary.cut, "packets were truncated in the capture"),
        (
            summary.not_followed,
            "packets were of more flows than are followed",
        ),
    ];
    let some = remarks.into_iter().filter(|(number, _)| *number > 0);
    some.map(|(number, label)| format!("{} {label}", count(number)))
        .collect()
}

fn shown(name: &str) -> String {
    // A name is ASCII, so any byte offset is valid.
    match name.len().checked_sub(LONGEST) {
        Some(more) if more > 0 => format!("…{}", &name[more + 1..]),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(shown("www.example.com"), "www.example.com");
        let name = format!("{}.example.com", "a".repeat(28));
        assert_eq!(name.len(), 40);
        assert_eq!(shown(&name), name);
        let longer = format!("a{name}");
        assert_eq!(shown(&longer), format!("…{}", &name[1..]));
        assert_eq!(shown(&longer).chars().count(), 40);
    }
}
