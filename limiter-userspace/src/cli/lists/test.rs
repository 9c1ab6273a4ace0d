//! `limiter lists test`.

use std::io::Write as _;

use clap::Args;
use ipnet::IpNet;
use limiter_policy::lists::{Extent, Findings, ListFinding, UseFinding};
use limiter_protocol::TestLists;
use limiter_report::lists::consequences;
use limiter_report::render::{count, counted, table};
use serde::Serialize;

use super::source::SourceArgs;
use crate::cli::{
    output::{print_json, stdout},
    parse::{self, ParsedValue},
};

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// An IPv4 or IPv6 address, or a prefix
    #[arg(value_name = "ADDRESS|PREFIX", value_parser = parse::prefix)]
    asked: ParsedValue<IpNet>,

    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Serialize)]
struct TestDocument<'f> {
    /// An address, or a prefix.
    asked: String,
    #[serde(flatten)]
    findings: &'f Findings,
}

pub(super) fn test(args: &TestArgs) -> anyhow::Result<()> {
    let asked = args.asked.value_with_warning();
    let findings = args
        .source
        .query(&TestLists { asked }, |config| config.policy.findings(asked))?;
    let shown = shown(asked);
    if args.source.output.json {
        return print_json(&TestDocument {
            asked: shown,
            findings: &findings,
        });
    }
    let mut out = stdout();
    if findings.lists.is_empty() {
        writeln!(out, "{shown} is on no list")?;
        return Ok(());
    }
    let number = counted(findings.lists.len(), "list");
    writeln!(out, "{shown} is on {number}")?;
    let rows = findings.lists.iter().map(row);
    writeln!(out, "{}", table(["list", "has", "used by"], [], rows))?;
    for line in consequences(&findings) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn row(found: &ListFinding) -> [String; 3] {
    let prefix = shown(found.prefix);
    let has = match (found.extent, found.more) {
        (Extent::All, _) => prefix,
        (Extent::Part, 0) => format!("{prefix}, a part of it"),
        (Extent::Part, more) => format!("{prefix} and {} more, parts of it", count(more as u64)),
    };
    [found.list.clone(), has, uses(&found.used_by)]
}

/// Names the uses of a list: `block, limits.Web.exclude`.
pub(super) fn uses(uses: &[UseFinding]) -> String {
    if uses.is_empty() {
        return "nothing".to_owned();
    }
    let uses: Vec<String> = uses.iter().map(ToString::to_string).collect();
    uses.join(", ")
}

/// Formats a prefix, a single address without its length.
fn shown(prefix: IpNet) -> String {
    if prefix.prefix_len() == prefix.max_prefix_len() {
        prefix.addr().to_string()
    } else {
        prefix.to_string()
    }
}
