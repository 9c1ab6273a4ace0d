//! The formats of feed files, their content and its bounds, and why a file has none.

use std::borrow::Cow;

use ipnet::IpNet;
use limiter_common::address::Family;
use serde::{Deserialize, Serialize};

use crate::text;

/// The format of a feed file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Detected from the file's content.
    #[default]
    Auto,
    /// An address, a prefix or a range `first-last` per line, with comments after `#` or `;`:
    /// `FireHOL`'s netsets, Tor's exits, Spamhaus DROP as text.
    Plain,
    /// A JSON object with `cidr` per line: Spamhaus DROP.
    JsonLines,
    /// `CrowdSec`'s decisions, or alerts with decisions, as JSON.
    #[serde(rename = "crowdsec")]
    CrowdSec,
    /// The output of `ipset save`.
    Ipset,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::Plain,
        Self::JsonLines,
        Self::CrowdSec,
        Self::Ipset,
    ];

    /// Returns the format's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Plain => "plain",
            Self::JsonLines => "json-lines",
            Self::CrowdSec => "crowdsec",
            Self::Ipset => "ipset",
        }
    }
}

/// The longest line, in bytes, of formats with one entry per line.
pub(super) const MAX_LINE: usize = 64 * 1024;

/// The most prefixes of a file, after merging overlapping and touching ones. While a policy is put in force,
/// the daemon needs about 250 bytes for each.
pub const MOST_PREFIXES: usize = 1 << 20;

/// An unreadable line of a feed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadLine {
    /// The line, counted from 1.
    pub line: u64,
    /// The error, on one line.
    pub message: String,
}

/// The content of a feed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its format, never [`Format::Auto`].
    pub format: Format,
    /// The smallest set of prefixes with its addresses, sorted.
    pub prefixes: Vec<IpNet>,
    /// The number of readable entries.
    pub entries: u64,
    /// The number of unreadable entries.
    pub bad: u64,
    /// The first of the unreadable entries.
    pub first_bad: Vec<BadLine>,
}

/// The reason why a feed file is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It is empty: a download failed, or is still running.
    #[error("it is empty; if the list should have no addresses, write a comment, '#'")]
    Empty,
    /// A line is too long.
    #[error("line {0} is longer than 64 KiB")]
    LongLine(u64),
    /// It comes to too many prefixes.
    #[error(
        "it has more than {} prefixes, the maximum for a feed",
        text::count(MOST_PREFIXES as u64)
    )]
    TooManyPrefixes,
    /// Together, its entries are every address of a family.
    #[error(
        "it covers every {} address: only the configuration may list that",
        text::family(*.0)
    )]
    Everything(Family),
    /// It is JSON, but not a feed: the document's name, and a way to convert it.
    #[error("expected CrowdSec's decisions, found {0}")]
    ForeignJson(Cow<'static, str>),
    /// It is not the expected JSON document.
    #[error("line {line}, column {column}: expected CrowdSec's decisions: {why}")]
    Json {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The error.
        why: &'static str,
    },
}
