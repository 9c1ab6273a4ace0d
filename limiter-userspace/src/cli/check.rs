//! `limiter check`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use limiter_common::policy::LimitEntry;
use serde::Serialize;

use super::{
    OutputArgs, print_json,
    render::{count, counted, duration, table},
};
use crate::{
    config::{self, Config},
    policy::{CompiledPolicy, Limit, Names},
};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The configuration file
    file: PathBuf,

    #[command(flatten)]
    output: OutputArgs,
}

/// A limit under its interned id.
#[derive(Serialize)]
struct Interned<'a> {
    id: u16,
    limit: &'a str,
    id_format: &'static str,
    cost: &'static str,
    burst: Option<u64>,
    count: Option<u64>,
    period_ns: Option<u64>,
    emission_interval_ns: Option<u64>,
    overrides: usize,
}

#[derive(Serialize)]
struct Checked<'a> {
    limits: Vec<Interned<'a>>,
    overrides: usize,
}

pub(super) fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let config = config::load(&args.file, &Names::default())?;
    // Everything but the kernel's part is tried.
    let compiled = CompiledPolicy::new(&config.policy)?;
    let limits: Vec<_> = config
        .policy
        .limits
        .iter()
        .zip(&compiled.limits)
        .map(|(limit, entry)| Interned::new(limit, entry))
        .collect();
    if args.output.json {
        return print_json(&Checked {
            limits,
            overrides: config.policy.override_count(),
        });
    }
    print(&config, &limits)
}

impl<'a> Interned<'a> {
    fn new(limit: &'a Limit, entry: &LimitEntry) -> Self {
        Self {
            id: limit.id.0,
            limit: &limit.name,
            id_format: limit.id_format.name(),
            cost: limit.cost.name(),
            burst: limit.default.map(|rate| rate.burst),
            count: limit.default.map(|rate| rate.count),
            period_ns: limit.default.map(|rate| rate.period_ns),
            emission_interval_ns: entry.default().map(|gcra| gcra.ns(gcra.emission_interval)),
            overrides: limit.overrides.len(),
        }
    }
}

fn print(config: &Config, limits: &[Interned<'_>]) -> anyhow::Result<()> {
    let header = [
        "id",
        "limit",
        "id format",
        "cost",
        "burst",
        "count",
        "period",
        "one per",
        "overrides",
    ];
    let rows = limits.iter().map(|limit| {
        let none = || "–".to_owned();
        [
            limit.id.to_string(),
            limit.limit.to_owned(),
            limit.id_format.to_owned(),
            limit.cost.to_owned(),
            limit.burst.map_or_else(none, count),
            limit.count.map_or_else(none, count),
            limit.period_ns.map_or_else(none, duration),
            limit.emission_interval_ns.map_or_else(none, duration),
            count(limit.overrides as u64),
        ]
    });
    let mut out = io::stdout();
    writeln!(out, "{}", table(header, [0, 4, 5, 6, 7, 8], rows))?;
    let interfaces = if config.interfaces.is_empty() {
        "none named: give them with -i".to_owned()
    } else {
        config.interfaces.join(", ")
    };
    writeln!(
        out,
        "{}, {}; interfaces: {interfaces}",
        counted(config.policy.limits.len(), "limit"),
        counted(config.policy.override_count(), "override"),
    )?;
    Ok(())
}
