//! Files with at most one entry per line.

use std::iter;

use super::{
    content::{MAX_LINE, ParseError},
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
pub(super) fn each(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    iter::from_fn(move || {
        let here = rest?;
        let end = here.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let (line, after) = here.split_at(end.unwrap_or(here.len()));
        rest = end.map(|_| after.strip_prefix(b"\r\n").unwrap_or(&after[1..]));
        Some(line)
    })
}

pub(super) fn text(line: &[u8]) -> Result<&str, String> {
    str::from_utf8(line).map_err(|_| "is not UTF-8 text".to_owned())
}
