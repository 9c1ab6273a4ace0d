//! nftables: a dynamic set of sources with `limit rate over`, at the netdev hook.

use anyhow::Result;
use bench_common::{FIRST_PORT, LAST_PORT, Layout, Sink};
use testbed::{Pair, SERVER_INTERFACE};

use super::{
    program,
    terms::{Override, Terms},
};
use crate::tool;

/// Sets the rules up on the server's end. They vanish with the namespace.
pub(super) fn start(pair: &Pair, terms: &Terms) -> Result<()> {
    tool::take_live_frames(&pair.server)?;
    tool::run(&pair.server, &["nft", "-f", "-"], &ruleset(terms))?;
    Ok(())
}

pub(super) fn ruleset(terms: &Terms) -> String {
    let (kind, key) = match terms.layout {
        Layout::V4 => ("ipv4_addr", "ip saddr"),
        Layout::V6Near | Layout::V6Far => ("ipv6_addr", "ip6 saddr"),
    };
    let size = program::capacity_for(terms.sources_log2);
    let mut rules = Vec::new();
    if let Some(Override {
        address,
        per_minute,
    }) = terms.overridden
    {
        rules.push(format!(
            "ip saddr {address} limit rate {per_minute}/minute burst 1 packets accept"
        ));
        rules.push(format!("ip saddr {address} counter drop"));
    }
    let rate = terms.per_second;
    rules.push(format!(
        "add @sources {{ {key} limit rate over {rate}/second burst {rate} packets }} counter drop"
    ));
    match terms.sink {
        Sink::Nothing => {}
        Sink::Flood => rules.push(format!("udp sport != {FIRST_PORT}-{LAST_PORT} drop")),
        Sink::Everything => rules.push("drop".to_owned()),
    }
    let rules = rules.join("\n    ");
    format!(
        "table netdev bench {{
  set sources {{ type {kind}; size {size}; flags dynamic; }}
  chain ingress {{
    type filter hook ingress device {SERVER_INTERFACE} priority 0;
    {rules}
  }}
}}
"
    )
}
