//! `limiter untrust`.

use std::io::Write as _;

use anyhow::bail;
use clap::Args;
use ipnet::IpNet;
use limiter_policy::text::short;
use limiter_protocol::known::{KnownChange, KnownChanges, KnownOutcome};
use limiter_report::render::count;
use serde_json::json;

use super::change::change;
use crate::cli::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
    parse::{self, ParsedValue, values_with_warnings},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct UntrustArgs {
    /// The addresses and prefixes to trust no more, of any length
    #[arg(value_name = "ADDRESS|PREFIX", value_parser = parse::prefix, required = true)]
    prefixes: Vec<ParsedValue<IpNet>>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(in crate::cli) fn untrust(args: &UntrustArgs) -> anyhow::Result<()> {
    let prefixes = values_with_warnings(&args.prefixes);
    let changes = prefixes.iter().copied().map(KnownChange::Untrust);
    let wanted = KnownChanges {
        changes: changes.collect(),
        together: true,
    };
    let outcomes = change(&args.read, &wanted)?.outcomes;
    let each = || prefixes.iter().zip(&outcomes);
    if args.output.json {
        let reported = each().map(|(prefix, outcome)| json!({"prefix": prefix, "result": outcome}));
        print_json(&json!({"known": reported.collect::<Vec<_>>()}))?;
    } else {
        let mut out = stdout();
        for (prefix, outcome) in each() {
            if let Some(line) = line(*prefix, outcome) {
                writeln!(out, "{line}")?;
            }
        }
    }
    let still_proven: Vec<_> = each()
        .filter_map(|(prefix, outcome)| still_proven(*prefix, outcome))
        .collect();
    if !still_proven.is_empty() {
        bail!("{}", still_proven.join("\n"));
    }
    Ok(())
}

fn line(prefix: IpNet, outcome: &KnownOutcome) -> Option<String> {
    let KnownOutcome::Untrusted {
        sources, part_of, ..
    } = outcome
    else {
        return None;
    };
    let prefix = short(prefix);
    Some(match (sources, part_of) {
        (0, None) => format!("nothing was known of {prefix}"),
        (0, Some(source)) => format!("nothing was known of {source}, the source of {prefix}"),
        (_, Some(source)) => format!("{source}, the source of {prefix}, is forgotten"),
        (1, None) => format!("{prefix} is forgotten"),
        (sources, None) => format!("{prefix} is forgotten: {} sources", count(*sources)),
    })
}

/// Names the list that keeps a prefix proven; `None`: no list does.
fn still_proven(prefix: IpNet, outcome: &KnownOutcome) -> Option<String> {
    match outcome {
        KnownOutcome::Untrusted {
            proven_by: Some(list),
            ..
        } => Some(format!(
            "{} is still proven: it is on the list {list}, which `standing: {{proven: …}}` names",
            short(prefix)
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_who_is_forgotten() {
        let check = |prefix: &str, sources, part_of: Option<&str>, expected: &str| {
            let outcome = KnownOutcome::Untrusted {
                sources,
                part_of: part_of.map(|prefix| prefix.parse().unwrap()),
                proven_by: None,
            };
            let reported = line(prefix.parse().unwrap(), &outcome);
            assert_eq!(reported.as_deref(), Some(expected));
        };
        check("192.0.2.1/32", 1, None, "192.0.2.1 is forgotten");
        check("192.0.2.1/32", 0, None, "nothing was known of 192.0.2.1");
        check("::/0", 1_200, None, "::/0 is forgotten: 1 200 sources");
        let source = Some("2001:db8::/64");
        check(
            "2001:db8::7/128",
            1,
            source,
            "2001:db8::/64, the source of 2001:db8::7, is forgotten",
        );
        check(
            "2001:db8::7/128",
            0,
            source,
            "nothing was known of 2001:db8::/64, the source of 2001:db8::7",
        );
    }
}
