//! iptables: hashlimit by source, in raw PREROUTING, the first hook.

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
    for rule in rules(terms) {
        let words: Vec<_> = rule.split(' ').collect();
        tool::run(&pair.server, &words, "")?;
    }
    Ok(())
}

/// Returns the commands. No argument contains a space.
pub(super) fn rules(terms: &Terms) -> Vec<String> {
    let iptables = match terms.layout {
        Layout::V4 => "iptables",
        Layout::V6Near | Layout::V6Far => "ip6tables",
    };
    let rule =
        |options: &str| format!("{iptables} -t raw -A PREROUTING -i {SERVER_INTERFACE} {options}");
    // Nothing expires during the measurement, as with the other contenders.
    let limit = |name: &str, options: &str| {
        format!(
            "-m hashlimit --hashlimit-name {name} --hashlimit-mode srcip \
             --hashlimit-htable-expire 600000 {options}"
        )
    };
    let mut rules = Vec::new();
    if let Some(Override {
        address,
        per_minute,
    }) = terms.overridden
    {
        let within = format!("--hashlimit-upto {per_minute}/minute --hashlimit-burst 1 -j ACCEPT");
        rules.push(rule(&format!(
            "-s {address} {}",
            limit("override", &within)
        )));
        rules.push(rule(&format!("-s {address} -j DROP")));
    }
    let rate = terms.per_second;
    let size = program::capacity_for(terms.sources_log2);
    let above = format!(
        "--hashlimit-htable-size {size} --hashlimit-htable-max {size} \
         --hashlimit-above {rate}/second --hashlimit-burst {rate} -j DROP"
    );
    rules.push(rule(&limit("bench", &above)));
    match terms.sink {
        Sink::Nothing => {}
        Sink::Flood => rules.push(rule(&format!(
            "-p udp ! --sport {FIRST_PORT}:{LAST_PORT} -j DROP"
        ))),
        Sink::Everything => rules.push(rule("-j DROP")),
    }
    rules
}
