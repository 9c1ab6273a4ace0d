//! nftables: a dynamic set of sources with `limit rate over`, at the netdev hook.

use anyhow::{Context as _, Result};
use bench_common::Layout;
use serde_json::Value;
use testbed::{Namespace, Pair, SERVER_INTERFACE};

use super::{AtWork, Counted, Terms};
use crate::tool;

pub(super) struct Nftables {
    server: Namespace,
}

impl Nftables {
    pub(super) fn start(pair: &Pair, terms: &Terms) -> Result<Self> {
        let server = pair.server.clone();
        tool::take_live_frames(&server)?;
        tool::run(&server, &["nft", "-f", "-"], &ruleset(terms))?;
        Ok(Self { server })
    }
}

fn ruleset(terms: &Terms) -> String {
    let (kind, key) = match terms.layout {
        Layout::V4 => ("ipv4_addr", "ip saddr"),
        Layout::V6Near | Layout::V6Far => ("ipv6_addr", "ip6 saddr"),
    };
    let size = super::program::capacity_for(terms.sources_log2);
    let rate = terms.per_second;
    let verdict = if terms.sink { "drop" } else { "accept" };
    format!(
        "table netdev bench {{
            counter passed {{}}
            counter dropped {{}}
            set sources {{ type {kind}; size {size}; flags dynamic; }}
            chain ingress {{
                type filter hook ingress device {SERVER_INTERFACE} priority 0;
                add @sources {{ {key} limit rate over {rate}/second burst {rate} packets }} counter name dropped drop
                counter name passed {verdict}
            }}
        }}"
    )
}

impl AtWork for Nftables {
    fn counted(&self) -> Result<Counted> {
        // Terse: or nft reads the whole set first.
        let json = tool::run(&self.server, &["nft", "-j", "-t", "list", "counters"], "")?;
        let json: Value = serde_json::from_str(&json).context("nft prints no JSON")?;
        let packets = |name: &str| {
            json["nftables"]
                .as_array()?
                .iter()
                .map(|object| &object["counter"])
                .find(|counter| counter["name"] == name)?["packets"]
                .as_u64()
        };
        Ok(Counted {
            passed: packets("passed").context("nft tells no counter `passed`")?,
            dropped: packets("dropped").context("nft tells no counter `dropped`")?,
        })
    }
}
