//! An address, a prefix or a range per line, with comments after `#` or `;`.
//!
//! `FireHOL`'s netsets, Tor's exits, and Spamhaus DROP, which has a record's number after `;`.

use super::{entries::Entries, lines};

pub(super) fn read(line: &[u8], entries: &mut Entries) -> Result<(), String> {
    // Comments may have any encoding.
    let end = line.iter().position(|byte| b"#;".contains(byte));
    let entry = line[..end.unwrap_or(line.len())].trim_ascii();
    if entry.is_empty() {
        return Ok(());
    }
    entries.add(lines::text(entry)?)
}
