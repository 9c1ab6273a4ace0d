//! An address, a prefix or a range per line, with comments after `#` or `;`. Columns after a tab are ignored,
//! except for an address in the second: it ends the prefix that the first begins.
//!
//! Covers `FireHOL`'s netsets, Tor's exits, Spamhaus DROP (with a record's number after `;`), and `DShield`'s
//! block list: `192.0.2.0<tab>192.0.2.255<tab>24<tab>2011<tab>…`.

use std::net::IpAddr;

use super::{entries::Entries, lines};

pub(super) fn read(line: &[u8], entries: &mut Entries) -> Result<(), String> {
    // Comments may have any encoding.
    let end = line.iter().position(|byte| b"#;".contains(byte));
    let entry = line[..end.unwrap_or(line.len())].trim_ascii();
    if entry.is_empty() {
        return Ok(());
    }
    let mut columns = entry.split(|byte| *byte == b'\t').map(<[u8]>::trim_ascii);
    let first = lines::text(columns.next().unwrap_or_default())?;
    // A hyphen between tabs is part of a range, or marks an empty column.
    let second = columns.find(|column| *column != b"-");
    let second = second.and_then(|column| str::from_utf8(column).ok());
    match second.filter(|column| column.parse::<IpAddr>().is_ok()) {
        Some(last) => entries.add_columns(first, last),
        None => entries.add(first),
    }
}
