//! `limiter stats`.

use std::{collections::BTreeMap, io::Write as _};

use clap::Args;
use limiter_protocol::{
    LimitStatus, QueueStatus, Status, StatusQuery,
    sieves::{EVERYTHING, SieveBrief},
};

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
};

#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// The only form, whose name scripts still give
    #[arg(long, hide = true)]
    flat: bool,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn stats(args: &StatsArgs) -> anyhow::Result<()> {
    let numbers = flat(&*args.read.query(&StatusQuery)?);
    if args.output.json {
        return print_json(&numbers);
    }
    let mut out = stdout();
    for (name, number) in numbers {
        writeln!(out, "{name} {number}")?;
    }
    Ok(())
}

/// Returns every counter under its flat name, `limiter.…`. The counters of limits with `metrics` also come
/// under the names of Traffic Server's plugin.
fn flat(status: &Status) -> BTreeMap<String, u64> {
    let mut numbers = BTreeMap::new();
    for (reason, packets) in &status.reasons {
        numbers.insert(format!("limiter.reason.{reason}.packets"), *packets);
    }
    for (name, limit) in &status.limits {
        add_limit(&mut numbers, name, limit);
    }
    for sieve in &status.sieves {
        add_sieve(&mut numbers, sieve);
    }
    let evictions = status.buckets.lossy_evictions;
    numbers.insert("limiter.bucket.lossy_evictions".to_owned(), evictions);
    numbers
}

fn add_limit(numbers: &mut BTreeMap<String, u64>, name: &str, limit: &LimitStatus) {
    for (counter, number) in [
        ("passed.packets", limit.passed_packets),
        ("passed.bytes", limit.passed_bytes),
        ("dropped.packets", limit.dropped_packets),
        ("dropped.bytes", limit.dropped_bytes),
        ("would_drop.packets", limit.would_drop_packets),
        ("would_drop.bytes", limit.would_drop_bytes),
    ] {
        numbers.insert(format!("limiter.limit.{name}.{counter}"), number);
    }
    let Some(metrics) = &limit.metrics else {
        return;
    };
    let (prefix, tag) = (&metrics.prefix, &metrics.tag);
    // As in the plugin, clients that cannot wait count as rejected; without a queue, all dropped packets do,
    // including drops by the limit's sieve.
    let without = QueueStatus {
        rejected: limit.dropped_packets,
        ..QueueStatus::default()
    };
    let queue = limit.queue.as_ref().unwrap_or(&without);
    for (metric, number) in [
        ("rejected", queue.rejected),
        ("queued", queue.queued),
        ("expired", queue.expired),
        ("resumed", queue.resumed),
    ] {
        numbers.insert(format!("{prefix}.sni.{tag}.{metric}"), number);
    }
}

fn add_sieve(numbers: &mut BTreeMap<String, u64>, sieve: &SieveBrief) {
    let name = &sieve.sieve;
    numbers.insert(format!("limiter.sieve.{name}.entries"), sieve.entries);
    for used in &sieve.uses {
        let used_by = used.limit.as_deref().unwrap_or(EVERYTHING);
        for (counter, number) in used.outcomes() {
            let key = format!("limiter.sieve.{name}.use.{used_by}.{counter}.packets");
            numbers.insert(key, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use limiter_policy::policy::{FlatMetrics, Mode};

    use super::*;
    use limiter_protocol::testing;

    #[test]
    fn names_are_those_of_traffic_server_and_our_own() {
        let mut status = testing::status();
        status.limits.insert(
            "Web".to_owned(),
            LimitStatus {
                mode: Mode::Enforce,
                strategy: "gcra".to_owned(),
                cost: "packets".to_owned(),
                rate: None,
                connections: None,
                passed_packets: 1,
                passed_bytes: 2,
                dropped_packets: 3,
                dropped_bytes: 4,
                would_drop_packets: 5,
                would_drop_bytes: 6,
                answers: BTreeMap::new(),
                automatic: None,
                queue: None,
                open: None,
                metrics: Some(FlatMetrics {
                    prefix: "limiter".to_owned(),
                    tag: "tls.example.com".to_owned(),
                }),
            },
        );
        status.reasons.insert("iprep".to_owned(), 7);
        let numbers = flat(&status);
        for (name, number) in [
            // As in the plugin's documentation.
            ("limiter.sni.tls.example.com.queued", 0),
            ("limiter.sni.tls.example.com.rejected", 3),
            ("limiter.sni.tls.example.com.expired", 0),
            ("limiter.sni.tls.example.com.resumed", 0),
            ("limiter.limit.Web.passed.packets", 1),
            ("limiter.limit.Web.passed.bytes", 2),
            ("limiter.limit.Web.dropped.packets", 3),
            ("limiter.limit.Web.dropped.bytes", 4),
            ("limiter.limit.Web.would_drop.packets", 5),
            ("limiter.limit.Web.would_drop.bytes", 6),
            ("limiter.reason.iprep.packets", 7),
            ("limiter.bucket.lossy_evictions", 0),
        ] {
            assert_eq!(numbers.get(name), Some(&number), "{name}");
        }
    }
}
