//! The formats with at most one entry per line, and the detection of a file's format from its first lines.

use std::{borrow::Cow, iter, net::IpAddr};

use serde::Deserialize;

use super::{
    content::{Format, MAX_LINE, ParseError},
    entries::Entries,
};

/// Reads each line with `read`, which returns its error.
pub(super) fn read(
    bytes: &[u8],
    entries: &mut Entries,
    read: impl Fn(&[u8], &mut Entries) -> Result<(), String>,
) -> Result<(), ParseError> {
    for (number, line) in (1..).zip(each(bytes)) {
        if line.len() > MAX_LINE {
            return Err(ParseError::LongLine(number));
        }
        if let Err(message) = read(line.trim_ascii(), entries) {
            entries.add_bad(|| number, message);
        }
        entries.room()?;
    }
    Ok(())
}

/// Returns the lines of a file. A lone carriage return ends a line, too: otherwise a comment in the first
/// line would swallow the whole file.
fn each(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    iter::from_fn(move || {
        let here = rest?;
        let end = here.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let (line, after) = here.split_at(end.unwrap_or(here.len()));
        rest = end.map(|_| after.strip_prefix(b"\r\n").unwrap_or(&after[1..]));
        Some(line)
    })
}

fn text(line: &[u8]) -> Result<&str, String> {
    str::from_utf8(line).map_err(|_| "is not UTF-8 text".to_owned())
}

/// Reads an address, a prefix or a range, with comments after `#` or `;`. Columns after a tab are ignored, except for
/// an address in the second: it ends the prefix that the first begins.
///
/// Covers `FireHOL`'s netsets, Tor's exits, Spamhaus DROP (with a record's number after `;`), and `DShield`'s
/// block list: `192.0.2.0<tab>192.0.2.255<tab>24<tab>2011<tab>…`.
pub(super) fn plain(line: &[u8], entries: &mut Entries) -> Result<(), String> {
    // Comments may have any encoding.
    let end = line.iter().position(|byte| b"#;".contains(byte));
    let entry = line[..end.unwrap_or(line.len())].trim_ascii();
    if entry.is_empty() {
        return Ok(());
    }
    let mut columns = entry.split(|byte| *byte == b'\t').map(<[u8]>::trim_ascii);
    let first = text(columns.next().unwrap_or_default())?;
    // A hyphen between tabs is part of a range, or marks an empty column.
    let second = columns.find(|column| *column != b"-");
    let second = second.and_then(|column| str::from_utf8(column).ok());
    match second.filter(|column| column.parse::<IpAddr>().is_ok()) {
        Some(last) => entries.add_columns(first, last),
        None => entries.add(first),
    }
}

/// A line of Spamhaus DROP, `{"cidr":"192.0.2.0/24","sblid":"SBL1","rir":"ripencc"}`.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    cidr: Option<Cow<'a, str>>,
    /// `metadata` in the last line, with the number of records and the list's time.
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
}

impl Record<'_> {
    fn is_metadata(&self) -> bool {
        self.kind.as_deref() == Some("metadata")
    }
}

/// Reads a JSON object.
pub(super) fn json(line: &[u8], entries: &mut Entries) -> Result<(), String> {
    if line.is_empty() {
        return Ok(());
    }
    match serde_json::from_slice::<Record<'_>>(line) {
        Ok(record) if record.is_metadata() => Ok(()),
        Ok(Record {
            cidr: Some(cidr), ..
        }) => entries.add(&cidr),
        _ => Err("expected a JSON object with 'cidr'".to_owned()),
    }
}

/// Reads a line of `ipset save`: a set or a member. The list has the members of all sets.
///
/// ```text
/// create blocked hash:net family inet hashsize 1024 maxelem 65536 timeout 300
/// add blocked 192.0.2.0/24 timeout 272
/// ```
pub(super) fn ipset(line: &[u8], entries: &mut Entries) -> Result<(), String> {
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(());
    }
    let text = text(line)?;
    let mut words = text.split_ascii_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("create"), Some(_), Some(_)) => Ok(()),
        (Some("add"), Some(_), Some(member)) => {
            // The text after `comment` is the operator's.
            let mut options = words.take_while(|word| *word != "comment");
            if options.any(|word| word == "nomatch") {
                return Err("it is an exception ('nomatch'), which lists cannot have".to_owned());
            }
            entries.add(member)
        }
        _ => Err("expected 'create' or 'add'".to_owned()),
    }
}

/// Returns the format of a file that is not empty.
pub(super) fn format_of(bytes: &[u8]) -> Format {
    let start = bytes.trim_ascii_start();
    if start.starts_with(b"[") || each(start).next() == Some(b"null") {
        return Format::CrowdSec;
    }
    if start.starts_with(b"{") {
        return of_object(start);
    }
    let mut lines = each(bytes).map(<[u8]>::trim_ascii);
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
    let first = each(bytes).next().filter(|line| line.len() <= MAX_LINE);
    let record = first.and_then(|line| serde_json::from_slice::<Record<'_>>(line).ok());
    let is_record = record.is_some_and(|record| record.is_metadata() || record.cidr.is_some());
    if is_record {
        Format::JsonLines
    } else {
        Format::CrowdSec
    }
}
