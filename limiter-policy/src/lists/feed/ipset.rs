//! The output of `ipset save`: sets and their members. The list has the members of all sets.
//!
//! ```text
//! create blocked hash:net family inet hashsize 1024 maxelem 65536 timeout 300
//! add blocked 192.0.2.0/24 timeout 272
//! ```

use super::{entries::Entries, lines};

pub(super) fn read(line: &[u8], entries: &mut Entries) -> Result<(), String> {
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(());
    }
    let text = lines::text(line)?;
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
