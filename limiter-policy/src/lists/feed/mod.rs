//! The parsers of feed files, a module per format.

mod content;
mod crowdsec;
mod detect;
mod entries;
mod foreign;
mod ipset;
mod items;
mod json_lines;
mod lines;
mod plain;
mod spans;

pub use self::content::{Content, MOST_PREFIXES, ParseError};
use self::entries::Entries;
use super::Format;

/// Reads the bytes of a feed file.
///
/// # Errors
///
/// The file as a whole is not a feed. Entries that cannot be read are only counted.
pub fn parse(bytes: &[u8], format: Format) -> Result<Content, ParseError> {
    parse_at_most(bytes, format, MOST_PREFIXES)
}

/// Reads the same with another bound on prefixes.
fn parse_at_most(bytes: &[u8], format: Format, most: usize) -> Result<Content, ParseError> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(ParseError::Empty);
    }
    let format = match format {
        Format::Auto => detect::format_of(bytes),
        _ => format,
    };
    let mut entries = Entries::at_most(most);
    match format {
        Format::Auto | Format::Plain => lines::read(bytes, &mut entries, plain::read)?,
        Format::JsonLines => lines::read(bytes, &mut entries, json_lines::read)?,
        Format::CrowdSec => crowdsec::read(bytes, &mut entries)?,
        Format::Ipset => lines::read(bytes, &mut entries, ipset::read)?,
    }
    entries.into_content(format)
}

#[cfg(test)]
mod tests;
