//! The replay's summary as text.

use std::io::Write;

use limiter_common::{
    counters::Traffic,
    reason::{Action, Reason},
};
use limiter_offline::replay::{DroppedSource, Sources, Summary};
use limiter_policy::policy::Policy;
use limiter_report::render::{count, duration, table};

use super::super::traffic::{LimitRow, limits_table};

/// The most sources to name.
const NAMED: usize = 10;

pub(super) fn summary(
    out: &mut impl Write,
    policy: &Policy,
    summary: &Summary,
    sources: &Sources,
) -> anyhow::Result<()> {
    capture(out, summary)?;
    limits(out, policy, summary)?;
    reasons(out, policy, summary)?;
    dropped(out, policy, sources)
}

fn capture(out: &mut impl Write, summary: &Summary) -> anyhow::Result<()> {
    let (passed, dropped) = (summary.of(Action::Pass), summary.of(Action::Drop));
    let mut total = passed;
    total += dropped;
    let length = summary.duration();
    writeln!(
        out,
        "{} packets, {} bytes in {}{}",
        count(total.packets),
        count(total.bytes),
        duration(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)),
        rates(total, length.as_nanos()),
    )?;
    writeln!(
        out,
        "{} passed, {} dropped",
        count(passed.packets),
        count(dropped.packets),
    )?;
    for (answer, number) in summary.answered() {
        writeln!(out, "{} answered: {}", count(number), answer.name())?;
    }
    if summary.cut > 0 {
        writeln!(
            out,
            "{} were truncated in the capture; they count with their length on the wire",
            count(summary.cut),
        )?;
    }
    writeln!(out)?;
    Ok(())
}

/// Formats the mean rates per second; empty if all packets have the same time.
fn rates(total: Traffic, length_ns: u128) -> String {
    let each_second = |number: u64| {
        let rate = (u128::from(number) * 1_000_000_000).checked_div(length_ns)?;
        Some(count(u64::try_from(rate).unwrap_or(u64::MAX)))
    };
    match (each_second(total.packets), each_second(total.bytes)) {
        (Some(packets), Some(bytes)) => format!(": {packets} packets/s, {bytes} bytes/s"),
        _ => String::new(),
    }
}

fn limits(out: &mut impl Write, policy: &Policy, summary: &Summary) -> anyhow::Result<()> {
    if policy.limits.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = policy
        .limits
        .iter()
        .zip(summary.limits())
        .map(|(limit, traffic)| LimitRow {
            name: limit.name.clone(),
            strategy: limit.strategy.name().to_owned(),
            mode: limit.mode,
            traffic: *traffic,
        })
        .collect();
    writeln!(out, "{}\n", limits_table(&rows))?;
    Ok(())
}

fn reasons(out: &mut impl Write, policy: &Policy, summary: &Summary) -> anyhow::Result<()> {
    let header = ["verdict", "reason", "packets", "bytes", "meaning"];
    let rows = Reason::ALL.iter().filter_map(|reason| {
        let traffic = summary.reason(*reason);
        (traffic.packets > 0).then(|| {
            [
                reason.action(policy.malformed).name().to_owned(),
                reason.name().to_owned(),
                count(traffic.packets),
                count(traffic.bytes),
                reason.meaning().to_owned(),
            ]
        })
    });
    writeln!(out, "{}", table(header, [2, 3], rows))?;
    Ok(())
}

fn dropped(out: &mut impl Write, policy: &Policy, sources: &Sources) -> anyhow::Result<()> {
    if sources.is_empty() {
        return Ok(());
    }
    let named = sources.dropped_most(NAMED);
    let header = [
        "dropped source",
        "packets",
        "bytes",
        "first",
        "last",
        "held at most",
        "by",
    ];
    let rows = named.iter().map(|source| {
        [
            source.address.to_string(),
            count(source.dropped.packets),
            count(source.dropped.bytes),
            time(source.first_ns),
            time(source.last_ns),
            held(source),
            by(policy, source),
        ]
    });
    writeln!(out, "\n{}", table(header, [1, 2, 3, 4, 5], rows))?;
    if sources.len() > named.len() {
        let others = sources.len() - named.len();
        writeln!(out, "and {} other sources", count(others as u64))?;
    }
    if sources.missed() > 0 {
        writeln!(
            out,
            "only the first {} sources with drops were tracked; {} packets of others were dropped",
            count(sources.len() as u64),
            count(sources.missed()),
        )?;
    }
    Ok(())
}

/// Formats the time since the first packet, in seconds to the microsecond.
pub(super) fn time(t_ns: i64) -> String {
    let sign = if t_ns < 0 { "-" } else { "" };
    let microseconds = t_ns.unsigned_abs() / 1_000;
    format!(
        "{sign}{}.{:06} s",
        microseconds / 1_000_000,
        microseconds % 1_000_000
    )
}

fn held(source: &DroppedSource) -> String {
    let longest = duration(source.held_ns);
    if source.still_held {
        format!("≥ {longest}")
    } else {
        longest
    }
}

/// Names the limits that dropped a source, with their parts if there are several. Drops by lists, bans and
/// sieves for all packets belong to no limit, nor do malformed packets.
fn by(policy: &Policy, source: &DroppedSource) -> String {
    let limits = source.by_limit.iter().filter_map(|(limit_index, packets)| {
        let limit = policy.limits.get(*limit_index as usize)?;
        Some((limit.name.as_str(), *packets))
    });
    let by_limits: u64 = source.by_limit.iter().map(|(_, packets)| *packets).sum();
    let others = source.dropped.packets.saturating_sub(by_limits);
    let parts: Vec<_> = limits
        .chain((others > 0).then_some(("no limit", others)))
        .collect();
    let names = parts.iter().map(|(name, packets)| {
        if parts.len() == 1 {
            (*name).to_owned()
        } else {
            format!("{name} ({})", count(*packets))
        }
    });
    names.collect::<Vec<_>>().join(", ")
}
