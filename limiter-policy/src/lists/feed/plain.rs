//! An address, a prefix or a range a line, with comments after `#` or `;`.
//!
//! `FireHOL`'s netsets, Tor's exits, and Spamhaus DROP, whose `;` comes with the number of a record.

use super::{entries::Entries, lines};

pub(super) fn read(line: &[u8], entries: &mut Entries) -> Result<(), String> {
    // A comment may be in whatever encoding.
    let end = line.iter().position(|byte| b"#;".contains(byte));
    let entry = line[..end.unwrap_or(line.len())].trim_ascii();
    if entry.is_empty() {
        return Ok(());
    }
    entries.add(lines::text(entry)?)
}
