//! iptables: hashlimit by source, in raw PREROUTING, the first hook there is.

use anyhow::{Context as _, Result};
use bench_common::Layout;
use testbed::{Namespace, Pair, SERVER_INTERFACE};

use super::{AtWork, Counted, Terms};
use crate::tool;

pub(super) struct Hashlimit {
    server: Namespace,
    iptables: &'static str,
}

impl Hashlimit {
    pub(super) fn start(pair: &Pair, terms: &Terms) -> Result<Self> {
        let server = pair.server.clone();
        tool::take_live_frames(&server)?;
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
        tool::run(&server, &[&rule[..], &limit].concat(), "")?;
        let target = if terms.sink { "DROP" } else { "ACCEPT" };
        tool::run(&server, &[&rule[..], &["-j", target]].concat(), "")?;
        Ok(Self { server, iptables })
    }
}

impl AtWork for Hashlimit {
    fn counted(&self) -> Result<Counted> {
        let command = [
            self.iptables,
            "-t",
            "raw",
            "-L",
            "PREROUTING",
            "-v",
            "-x",
            "-n",
        ];
        let listing = tool::run(&self.server, &command, "")?;
        // Two lines of heading; each rule starts with its packets.
        let mut packets = listing
            .lines()
            .skip(2)
            .map(|line| line.split_whitespace().next()?.parse().ok());
        let (dropped, passed) = (packets.next().flatten(), packets.next().flatten());
        Ok(Counted {
            passed: passed.context("iptables tells no counter of what passed")?,
            dropped: dropped.context("iptables tells no counter of what was dropped")?,
        })
    }
}
