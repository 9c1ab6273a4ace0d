//! What feed files are written in, a file for each format.

mod crowdsec;
mod detect;
mod entries;
mod ipset;
mod items;
mod json_lines;
mod lines;
mod plain;
mod spans;

use ipnet::IpNet;
use limiter_common::address::Family;

use self::entries::Entries;
use super::{Format, report::BadLine};
use crate::text;

/// The most bytes of a line, in formats that have one entry a line.
const MAX_LINE: usize = 64 * 1024;

/// The most prefixes that a file comes to, when those that overlap or touch are one. What the
/// daemon has of a policy takes some 250 bytes for each, while it is put in force.
pub const MOST_PREFIXES: usize = 1 << 20;

/// What a feed file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// What it is written in, never [`Format::Auto`].
    pub format: Format,
    /// As few prefixes as have all its addresses, in order.
    pub prefixes: Vec<IpNet>,
    /// How many entries could be read.
    pub entries: u64,
    /// How many could not.
    pub bad: u64,
    /// The first of those.
    pub first_bad: Vec<BadLine>,
}

/// Why of a feed file nothing can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Nothing is in it: a download failed, or is under way.
    #[error("it is empty; a list that is meant to have no addresses has a comment, '#'")]
    Empty,
    /// A line is too long to be one.
    #[error("line {0} is longer than 64 KiB")]
    LongLine(u64),
    /// It comes to too many prefixes.
    #[error(
        "it comes to more than {} prefixes, which is the most that a feed may have",
        text::count(MOST_PREFIXES as u64)
    )]
    TooManyPrefixes,
    /// All of it together is every address of a family.
    #[error(
        "it covers every {} address: only the configuration itself may list that",
        text::family(*.0)
    )]
    Everything(Family),
    /// It is a document, and no such one.
    #[error("line {line}, column {column}: {message}")]
    Json {
        /// The line, counted from 1.
        line: usize,
        /// The column, likewise.
        column: usize,
        /// What is wrong.
        message: String,
    },
}

/// Reads the bytes of a feed file.
///
/// # Errors
///
/// When the file as a whole is no feed; entries that cannot be read are counted.
pub fn parse(bytes: &[u8], format: Format) -> Result<Content, ParseError> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(ParseError::Empty);
    }
    let format = match format {
        Format::Auto => detect::format_of(bytes),
        _ => format,
    };
    let mut entries = Entries::default();
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
