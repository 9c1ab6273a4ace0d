//! Detects a file's format from its first lines.

use super::{content::MAX_LINE, json_lines::Record, lines};
use crate::lists::Format;

/// Returns the format of a file that is not empty.
pub(super) fn format_of(bytes: &[u8]) -> Format {
    let start = bytes.trim_ascii_start();
    if start.starts_with(b"[") || lines::each(start).next() == Some(b"null") {
        return Format::CrowdSec;
    }
    if start.starts_with(b"{") {
        return of_object(start);
    }
    let mut lines = lines::each(bytes).map(<[u8]>::trim_ascii);
    let telling = lines.find(|line| !line.is_empty() && !b"#;".contains(&line[0]));
    let is_ipset = telling.is_some_and(|line| {
        let word = line.split(u8::is_ascii_whitespace).next();
        matches!(word, Some(b"create" | b"add"))
    });
    if is_ipset {
        Format::Ipset
    } else {
        Format::Plain
    }
}

/// Returns the format of a file that begins with an object: JSON lines if the first line is a whole
/// record.
fn of_object(bytes: &[u8]) -> Format {
    let first = lines::each(bytes)
        .next()
        .filter(|line| line.len() <= MAX_LINE);
    let record = first.and_then(|line| serde_json::from_slice::<Record<'_>>(line).ok());
    let is_record = record.is_some_and(|record| record.is_metadata() || record.cidr.is_some());
    if is_record {
        Format::JsonLines
    } else {
        Format::CrowdSec
    }
}
