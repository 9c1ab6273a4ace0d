//! `limiter suggest --running`: the fit of the limits in force, by their counters. Counters tell the packets
//! that each limit dropped, or would drop, but not their sources and times: no rate follows from them.

use std::io::Write as _;

use limiter_offline::suggest::LimitFit;
use limiter_protocol::{LimitStatus, StatusQuery};

use super::check::print;
use crate::cli::{
    args::ReadArgs,
    output::{print_json, stdout},
};

pub(super) fn judge(read: &ReadArgs, most_dropped: f64, json: bool) -> anyhow::Result<()> {
    let status = read.query(&StatusQuery)?;
    let limits: Vec<_> = (status.limits.into_iter())
        .map(|(name, limit)| limit_fit(name, &limit, most_dropped))
        .collect();
    if json {
        return print_json(&limits);
    }
    print(&limits, most_dropped)?;
    writeln!(
        stdout(),
        "counted since the limits are in force, floods included; for rates give a capture, or an \
         interface with -i"
    )?;
    Ok(())
}

fn limit_fit(name: String, limit: &LimitStatus, most_dropped: f64) -> LimitFit {
    let would_drop = limit
        .dropped_packets
        .saturating_add(limit.would_drop_packets);
    let packets = limit.passed_packets.saturating_add(would_drop);
    LimitFit::new(name, limit.mode, packets, would_drop, None, most_dropped)
}
