//! Files with at most one entry per line.

use super::{
    content::{MAX_LINE, ParseError},
    entries::Entries,
};

/// Reads each line by `read`, which returns what is wrong with it.
pub(super) fn read(
    bytes: &[u8],
    entries: &mut Entries,
    read: impl Fn(&[u8], &mut Entries) -> Result<(), String>,
) -> Result<(), ParseError> {
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if line.len() > MAX_LINE {
            return Err(ParseError::LongLine(number));
        }
        if let Err(message) = read(line.trim_ascii(), entries) {
            entries.note(|| number, message);
        }
        entries.room()?;
    }
    Ok(())
}

/// Returns a line as text.
pub(super) fn text(line: &[u8]) -> Result<&str, String> {
    str::from_utf8(line).map_err(|_| "is not UTF-8 text".to_owned())
}
