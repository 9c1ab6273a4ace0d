//! `limiter check`.

mod answers;
mod automatic;
mod bans;
mod connections;
mod diff;
mod dns_cookies;
mod forged;
mod lists;
mod machine;
mod owned_names;
mod peers;
mod queues;
mod rates;
mod shared_limits;
mod sieves;
mod standing;
mod states;

use std::io::Write;

use clap::Args;
use jiff::Timestamp;
use limiter_common::{
    limit::{Cost, NameKind},
    strategy::{Strategy, gcra::Gcra},
};
use limiter_datapath::kernel::possible_cpus;
use limiter_host::guard::CountedPeer;
use limiter_policy::{
    config::{self, Config},
    policy::{
        AutomaticBan, CompiledPolicy, Deny, DnsCookies, FlatMetrics, Limit, Match, Queue, Reserve,
        StandingSettings, id_text,
    },
};
use limiter_protocol::FleetBrief;
use limiter_report::render::{count, counted, duration, table_without};
use serde::Serialize;

use self::{lists::CheckedLists, sieves::CheckedSieve};
use super::{
    args::{ConfigArgs, OutputArgs, ReadArgs},
    output::{print_json, stdout},
};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Show the changes that a reload of the file would make
    #[arg(long)]
    diff: bool,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// A limit with its interned id.
#[derive(Serialize)]
struct InternedLimit<'a> {
    id: u16,
    limit: &'a str,
    mode: &'static str,
    id_format: &'static str,
    /// The length of the ranges; `None`: the ids are not ranges.
    prefix_length: Option<u8>,
    /// The part of a DNS question with a bucket of its own for each key.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_name: Option<&'static str>,
    /// The two fields above, for a table.
    #[serde(skip)]
    keys: String,
    cost: &'static str,
    strategy: &'static str,
    /// `None`: it matches every packet.
    #[serde(rename = "match")]
    matching: Option<&'a Match>,
    /// How many connections may be open at once; `None`: the limit does not count connections.
    #[serde(rename = "connections_limit", skip_serializing_if = "Option::is_none")]
    connections: Option<u64>,
    /// The settings of its queue; `None`: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<Queue>,
    /// The group of limits on connections that share one count; `None`: it has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    /// `None`: it has no rate, or it is a window, which admits `count`.
    burst: Option<u64>,
    count: Option<u64>,
    period_ns: Option<u64>,
    /// `None`: it has no rate, or it is a window, which may admit its whole count at once.
    emission_interval_ns: Option<u64>,
    /// The most that it admits in any span of `period_ns`.
    at_worst: Option<u64>,
    /// The highest value of an automatic rate, in tokens a second; `burst`, `count` and `period_ns` describe
    /// its floor.
    #[serde(skip_serializing_if = "Option::is_none")]
    ceiling: Option<u64>,
    /// The number of nodes that share its budget; `None`: the fleet does not share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet_nodes: Option<u32>,
    overrides: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reserve: Option<Reserve>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deny: Option<Deny>,
    /// `None`: it does not ban.
    ban: Option<AutomaticBan>,
    exclude: &'a [String],
    block: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_rep: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<&'a FlatMetrics>,
}

#[derive(Serialize)]
struct PolicyDocument<'a> {
    limits: Vec<InternedLimit<'a>>,
    overrides: usize,
    subscribers: usize,
    exclude: &'a [String],
    block: &'a [String],
    never_ban: &'a [String],
    #[serde(flatten)]
    lists: CheckedLists<'a>,
    sieves: Vec<CheckedSieve<'a>>,
    /// `None`: no limit uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<StandingSettings>,
    /// `None`: no source is proven by cookies.
    #[serde(skip_serializing_if = "Option::is_none")]
    dns_cookies: Option<&'a DnsCookies>,
    /// The host's own peers with replies that limits count.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    counted_peers: &'a [CountedPeer<'a>],
    /// The fleet, with this environment's variables; `None`: the host is alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<FleetBrief>,
}

pub(super) fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let config = config::load(args.config.path(), now)?;
    // Test the parts of loading that do not need the kernel.
    CompiledPolicy::new(&config.policy, possible_cpus())?;
    let lists = CheckedLists::of(&config);
    lists.warn(&config, now);
    rates::warn(&config.policy);
    forged::warn(&config.policy);
    sieves::warn(&config.policy);
    standing::warn(&config.policy);
    owned_names::warn(&config.policy);
    answers::warn(&config.policy);
    dns_cookies::warn(&config);
    states::warn(&config.policy);
    connections::warn(&config.policy);
    let peers = machine::inspect(&config)?;
    if args.diff {
        return diff::show(&config, &args.read, args.output.json);
    }
    let policy = &config.policy;
    let limits: Vec<_> = policy.limits.iter().map(InternedLimit::new).collect();
    if args.output.json {
        return print_json(&PolicyDocument {
            limits,
            overrides: policy.override_count(),
            subscribers: policy.subscribers.len(),
            exclude: &policy.exclude,
            block: &policy.block,
            never_ban: &policy.never_ban,
            lists,
            sieves: sieves::sieves(policy),
            standing: policy.standing_in_use(),
            dns_cookies: policy.dns_cookies_in_use(),
            counted_peers: &peers,
            fleet: config.fleet.as_ref().map(FleetBrief::from),
        });
    }
    print(&config, &limits, &lists, &peers)
}

impl<'a> InternedLimit<'a> {
    fn new(limit: &'a Limit) -> Self {
        // Each field by its name, so that no new one is forgotten.
        let Limit {
            name,
            id,
            id_format,
            per_name,
            cost,
            strategy,
            matching,
            mode,
            reserve,
            deny,
            ban,
            queue,
            group,
            default,
            ceiling,
            fleet_nodes,
            overrides,
            exclude,
            block,
            ip_rep,
            metrics,
        } = limit;
        let connections = default.filter(|_| *cost == Cost::Connections);
        let rate = default.filter(|_| *cost != Cost::Connections);
        let refilled = rate.filter(|_| strategy.has_burst());
        let gcra = refilled.and_then(|rate| Gcra::new(rate.burst, rate.count, rate.period_ns));
        Self {
            id: id.0,
            limit: name,
            mode: mode.name(),
            id_format: id_format.name(),
            prefix_length: id_format.range().map(|range| range.prefix_length),
            per_name: per_name.map(NameKind::name),
            keys: id_text(*id_format, *per_name),
            cost: cost.name(),
            strategy: strategy.name(),
            matching: (!matching.is_everything()).then_some(matching),
            connections: connections.map(|rate| rate.burst),
            queue: *queue,
            group: group.as_deref(),
            burst: refilled.map(|rate| rate.burst),
            count: rate.map(|rate| rate.count),
            period_ns: rate.map(|rate| rate.period_ns),
            emission_interval_ns: gcra.map(|gcra| gcra.ns(gcra.emission_interval)),
            at_worst: rate.map(|rate| strategy.most_in_a_period(rate.burst, rate.count)),
            ceiling: *ceiling,
            fleet_nodes: *fleet_nodes,
            overrides: overrides.len(),
            reserve: *reserve,
            deny: *deny,
            ban: *ban,
            exclude,
            block,
            ip_rep: ip_rep.as_deref(),
            metrics: metrics.as_ref(),
        }
    }
}

fn print(
    config: &Config,
    limits: &[InternedLimit<'_>],
    lists: &CheckedLists<'_>,
    peers: &[CountedPeer<'_>],
) -> anyhow::Result<()> {
    let header = [
        "id",
        "limit",
        "mode",
        "id format",
        "cost",
        "strategy",
        "match",
        "burst",
        "count",
        "period",
        "one per",
        "at worst",
        "overrides",
    ];
    // These columns matter only if strategies differ.
    let hidden: &[usize] = if limits
        .iter()
        .all(|limit| limit.strategy == Strategy::default().name())
    {
        &[5, 11]
    } else {
        &[]
    };
    let rows = limits.iter().map(|limit| {
        let none = || "–".to_owned();
        [
            limit.id.to_string(),
            limit.limit.to_owned(),
            limit.mode.to_owned(),
            limit.keys.clone(),
            limit.cost.to_owned(),
            limit.strategy.to_owned(),
            limit
                .matching
                .as_ref()
                .map_or_else(none, ToString::to_string),
            limit.burst.or(limit.connections).map_or_else(none, count),
            match (limit.count, limit.ceiling) {
                (Some(floor), Some(ceiling)) => format!("{} to {}", count(floor), count(ceiling)),
                (rate, _) => rate.map_or_else(none, count),
            },
            limit.period_ns.map_or_else(none, duration),
            limit.emission_interval_ns.map_or_else(none, duration),
            limit.at_worst.map_or_else(none, count),
            count(limit.overrides as u64),
        ]
    });
    let mut out = stdout();
    if !limits.is_empty() {
        let right = [0, 7, 8, 9, 10, 11, 12];
        let shown = table_without(hidden, header, right, rows);
        writeln!(out, "{shown}")?;
    }
    automatic::print(&mut out, &config.policy)?;
    shared_limits::print(&mut out, &config.policy)?;
    queues::print(&mut out, &config.policy)?;
    answers::print(&mut out, &config.policy)?;
    bans::print(&mut out, &config.policy)?;
    sieves::print(&mut out, &sieves::sieves(&config.policy))?;
    standing::print(&mut out, &config.policy)?;
    dns_cookies::print(&mut out, &config.policy)?;
    lists.print(&mut out)?;
    if !config.policy.subscribers.is_empty() {
        let subscribers = config.policy.subscribers.len();
        writeln!(out, "{}", counted(subscribers, "subscriber"))?;
    }
    let interfaces = if config.interfaces.is_empty() {
        "none named: give them with -i".to_owned()
    } else {
        let names = config.interfaces.iter().map(ToString::to_string);
        names.collect::<Vec<_>>().join(", ")
    };
    writeln!(
        out,
        "{}, {}; interfaces: {interfaces}",
        counted(config.policy.limits.len(), "limit"),
        counted(config.policy.override_count(), "override"),
    )?;
    // The daemon's environment may have other values of variables.
    if let Some(fleet) = &config.fleet {
        writeln!(out, "fleet {}", FleetBrief::from(fleet))?;
    }
    peers::print(&mut out, peers)
}
