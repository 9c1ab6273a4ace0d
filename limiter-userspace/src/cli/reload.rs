//! `limiter reload`.

use std::io::Write as _;

use clap::Args;
use limiter_protocol::{Reload, ReloadResult, SettingDiff};
use limiter_report::render::{counted, duration};

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
};

#[derive(Debug, Args)]
pub(super) struct ReloadArgs {
    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn reload(args: &ReloadArgs) -> anyhow::Result<()> {
    let reloaded = args.read.query_daemon(Reload)?;
    if args.output.json {
        print_json(&reloaded)
    } else {
        print(&reloaded)
    }
}

fn print(reloaded: &ReloadResult) -> anyhow::Result<()> {
    let mut out = stdout();
    writeln!(
        out,
        "policy {} is in force: {}, {}",
        reloaded.generation,
        counted(reloaded.limits, "limit"),
        counted(reloaded.overrides, "override"),
    )?;
    for name in &reloaded.begun_anew {
        writeln!(
            out,
            "the strategy of {name} has changed: its buckets begin anew, and earlier counts are \
             forgotten"
        )?;
    }
    if let Some(fate) = reloaded.known_sources {
        writeln!(
            out,
            "`standing` has changed: the known sources {}",
            fate.meaning()
        )?;
    }
    for name in &reloaded.waiting_for {
        writeln!(out, "{name}: NOT attached: waiting for it to appear")?;
    }
    for SettingDiff { setting, old, new } in &reloaded.after_restart {
        writeln!(out, "only a restart changes `{setting}`: {old} → {new}")?;
    }
    if let Some(ns) = reloaded.confirm_within_ns {
        writeln!(
            out,
            "it is reverted in {} unless you run `limiter confirm`",
            duration(ns)
        )?;
    }
    Ok(())
}
