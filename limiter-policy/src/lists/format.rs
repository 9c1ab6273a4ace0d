//! The formats of feed files.

use serde::{Deserialize, Serialize};

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
