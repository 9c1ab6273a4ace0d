//! The query parameters of the page's addresses.

use std::net::IpAddr;

use limiter_policy::{policy::bans::Origin, prefix::meant};
use serde::Deserialize;

use limiter_protocol::{Grouping, bans::BansQuery};

/// Selects offenders.
#[derive(Debug, Default, Deserialize)]
pub(super) struct OffendersParams {
    /// How many rows to leave out.
    #[serde(default)]
    pub(super) from: usize,
    /// How to group them.
    pub(super) by: Option<Grouping>,
    /// Only offenders of this limit; empty: of all.
    #[serde(default)]
    pub(super) limit: String,
}

/// Selects bans.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct BansParams {
    /// Only bans that contain this prefix or address, or lie within it; empty: all.
    #[serde(default)]
    pub(super) prefix: String,
    /// Only bans of this origin; empty: of all.
    #[serde(default)]
    pub(super) origin: String,
    /// Where to continue.
    pub(super) position: Option<u32>,
    /// How many rows to leave out from there on.
    #[serde(default)]
    pub(super) skip: usize,
}

impl BansParams {
    /// Returns the query for the daemon; `None`: a parameter is invalid.
    pub(super) fn query(&self) -> Option<BansQuery> {
        let prefix = match self.prefix.trim() {
            "" => None,
            text => Some(meant(text).ok()?.prefix),
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

#[derive(Deserialize)]
pub(super) struct ExplainParams {
    pub(super) address: String,
}

impl ExplainParams {
    /// Returns the address; `None`: the text is not an address.
    pub(super) fn address(&self) -> Option<IpAddr> {
        let prefix = meant(self.address.trim()).ok()?.prefix;
        (prefix.prefix_len() == prefix.max_prefix_len()).then(|| prefix.addr())
    }
}

/// Selects a part of the history.
#[derive(Deserialize)]
pub(super) struct HistoryParams {
    pub(super) window: Window,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Window {
    /// Ten minutes by second.
    Minutes,
    /// A day by minute.
    Day,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As IPv6, a mapped address would match no limit and no ban.
    #[test]
    fn addresses_are_read_as_they_are_meant() {
        let explain = |address: &str| {
            let address = address.to_owned();
            ExplainParams { address }.address()
        };
        let expected = "192.0.2.1".parse().ok();
        for text in ["192.0.2.1", " ::ffff:192.0.2.1 ", "192.0.2.1/32"] {
            assert_eq!(explain(text), expected, "{text}");
        }
        for text in ["", "192.0.2.0/24", "eth0"] {
            assert_eq!(explain(text), None, "{text}");
        }
        let prefix = |text: &str| {
            let asked = BansParams {
                prefix: text.to_owned(),
                ..BansParams::default()
            };
            asked.query().and_then(|query| query.prefix)
        };
        let expected = "192.0.2.0/24".parse().ok();
        for text in ["192.0.2.7/24", "::ffff:192.0.2.7/120"] {
            assert_eq!(prefix(text), expected, "{text}");
        }
    }
}
