//! The parsers of feed files.

mod content;
mod crowdsec;
mod entries;
mod foreign;
mod items;
mod lines;
mod spans;

pub use self::content::{BadLine, Content, Format, MOST_PREFIXES, ParseError};
use self::entries::Entries;

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
        Format::Auto => lines::format_of(bytes),
        _ => format,
    };
    let mut entries = Entries::at_most(most);
    match format {
        Format::Auto | Format::Plain => lines::read(bytes, &mut entries, lines::plain)?,
        Format::JsonLines => lines::read(bytes, &mut entries, lines::json)?,
        Format::CrowdSec => crowdsec::read(bytes, &mut entries)?,
        Format::Ipset => lines::read(bytes, &mut entries, lines::ipset)?,
    }
    entries.into_content(format)
}

#[cfg(test)]
mod tests;
