//! The status for people.

use std::io::Write;

use limiter_common::reason::Reason;

use super::super::{
    render::{count, counted, table},
    traffic::{LimitRow, limits_table, malformed_action},
};
use crate::control::protocol::Status;

pub(super) fn print(out: &mut impl Write, status: &Status) -> anyhow::Result<()> {
    for interface in &status.interfaces {
        let (name, mode, since) = (&interface.name, &interface.mode, interface.since);
        if !interface.attached {
            writeln!(out, "{name}: NOT attached: the interface has vanished")?;
            continue;
        }
        writeln!(out, "{name}: attached in {mode} mode since {since:.0}")?;
        if let Some(reason) = &interface.fell_back {
            writeln!(out, "  slow: the driver refused native mode ({reason})")?;
        }
    }
    writeln!(
        out,
        "policy {}: {}, {}",
        status.policy.generation,
        counted(status.policy.limits, "limit"),
        counted(status.policy.overrides, "override"),
    )?;
    writeln!(
        out,
        "buckets: up to {} in the {} store, {} forgotten while in debt\n",
        count(status.buckets.capacity.into()),
        status.buckets.store,
        count(status.buckets.lossy_evictions),
    )?;

    let limits: Vec<_> = status
        .limits
        .iter()
        .map(|(name, limit)| LimitRow {
            name: name.clone(),
            mode: limit.mode.clone(),
            traffic: limit.into(),
        })
        .collect();
    writeln!(out, "{}\n", limits_table(&limits))?;

    let malformed = malformed_action(&status.policy);
    // In the order of the table of reasons; those that never occurred say nothing.
    let reasons = Reason::ALL.iter().filter_map(|reason| {
        let packets = status
            .reasons
            .get(reason.name())
            .filter(|packets| **packets > 0)?;
        Some([
            reason.action(malformed).name().to_owned(),
            reason.name().to_owned(),
            count(*packets),
            reason.meaning().to_owned(),
        ])
    });
    let mut reasons = reasons.peekable();
    if reasons.peek().is_none() {
        writeln!(out, "No packet has come yet.")?;
    } else {
        let header = ["verdict", "reason", "packets", "meaning"];
        writeln!(out, "{}", table(header, [2], reasons))?;
    }
    Ok(())
}
