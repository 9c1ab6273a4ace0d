//! What feed files are written in.

use serde::{Deserialize, Serialize};

/// What a feed file is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// That of the others which the file looks like.
    #[default]
    Auto,
    /// An address, a prefix or a range `first-last` a line, with comments after `#` or `;`:
    /// `FireHOL`'s netsets, Tor's exits, Spamhaus DROP as text.
    Plain,
    /// A JSON object with `cidr` a line: Spamhaus DROP.
    JsonLines,
    /// `CrowdSec`'s decisions, or alerts with decisions, as JSON.
    #[serde(rename = "crowdsec")]
    CrowdSec,
    /// What `ipset save` prints.
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

    /// The format's name in configuration files and output.
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
