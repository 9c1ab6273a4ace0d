//! What visitors ask for, in a page's address.

use std::net::IpAddr;

use ipnet::IpNet;
use limiter_policy::policy::bans::Origin;
use serde::Deserialize;

use crate::protocol::{Grouping, bans::BansQuery};

/// Selects offenders.
#[derive(Debug, Default, Deserialize)]
pub(super) struct OffendersAsked {
    /// How many rows to leave out.
    #[serde(default)]
    pub(super) from: usize,
    /// How to group them.
    pub(super) by: Option<Grouping>,
    /// Only those of this limit; empty: of all.
    #[serde(default)]
    pub(super) limit: String,
}

/// Selects bans.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct BansAsked {
    /// Only those that contain this prefix or address, or lie within it; empty: all.
    #[serde(default)]
    pub(super) prefix: String,
    /// Only those of this origin; empty: of all.
    #[serde(default)]
    pub(super) origin: String,
    /// Where to continue.
    pub(super) position: Option<u32>,
    /// How many rows from there on to leave out.
    #[serde(default)]
    pub(super) skip: usize,
}

impl BansAsked {
    /// Returns what a visitor asks for; `None`: it is none that the daemon could answer.
    pub(super) fn query(&self) -> Option<BansQuery> {
        let prefix = match self.prefix.trim() {
            "" => None,
            text => Some(prefix(text)?),
        };
        let origin = match self.origin.trim() {
            "" => None,
            name => Some(name.parse::<Origin>().ok()?),
        };
        Some(BansQuery {
            prefix,
            origin,
            position: self.position,
        })
    }
}

/// Reads an address or a prefix.
fn prefix(text: &str) -> Option<IpNet> {
    let address = text.parse::<IpAddr>().map(IpNet::from).ok();
    address.or_else(|| text.parse::<IpNet>().ok().map(|prefix| prefix.trunc()))
}

/// Selects an address.
#[derive(Deserialize)]
pub(super) struct ExplainAsked {
    pub(super) address: String,
}

/// Selects a part of the history.
#[derive(Deserialize)]
pub(super) struct HistoryAsked {
    pub(super) window: Window,
}

/// A part of the history.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Window {
    /// Ten minutes by second.
    Minutes,
    /// A day by minute.
    Day,
}
