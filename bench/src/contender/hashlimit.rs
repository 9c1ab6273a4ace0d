//! iptables: hashlimit by source, in raw PREROUTING, the first hook there is.

use anyhow::Result;
use bench_common::{FIRST_PORT, LAST_PORT, Layout, Sink};
use testbed::{Pair, SERVER_INTERFACE};

use super::Terms;
use crate::tool;

/// Sets it up on the server's end; it goes with the namespace.
pub(super) fn start(pair: &Pair, terms: &Terms) -> Result<()> {
    let server = &pair.server;
    tool::take_live_frames(server)?;
    let iptables = match terms.layout {
        Layout::V4 => "iptables",
        Layout::V6Near | Layout::V6Far => "ip6tables",
    };
    let size = super::program::capacity_for(terms.sources_log2).to_string();
    let above = format!("{}/second", terms.per_second);
    let burst = terms.per_second.to_string();
    let rule = [
        iptables,
        "-t",
        "raw",
        "-A",
        "PREROUTING",
        "-i",
        SERVER_INTERFACE,
    ];
    #[rustfmt::skip]
    let limit = [
        "-m", "hashlimit",
        "--hashlimit-name", "bench",
        "--hashlimit-mode", "srcip",
        "--hashlimit-above", &above,
        "--hashlimit-burst", &burst,
        "--hashlimit-htable-size", &size,
        "--hashlimit-htable-max", &size,
        // Nothing expires while it is measured, as in the others.
        "--hashlimit-htable-expire", "600000",
        "-j", "DROP",
    ];
    tool::run(server, &[&rule[..], &limit].concat(), "")?;
    let ports = format!("{FIRST_PORT}:{LAST_PORT}");
    let behind: &[&str] = match terms.sink {
        Sink::Nothing => return Ok(()),
        Sink::Flood => &["-p", "udp", "!", "--sport", &ports, "-j", "DROP"],
        Sink::Everything => &["-j", "DROP"],
    };
    tool::run(server, &[&rule[..], behind].concat(), "")?;
    Ok(())
}
