//! `limiter trust`.

use std::io::Write as _;

use anyhow::bail;
use clap::Args;
use ipnet::IpNet;
use limiter_policy::text::short;
use limiter_protocol::known::{KnownChange, KnownChanges, KnownOutcome};
use limiter_report::render::{count, duration};
use serde_json::json;

use super::{
    ENDS_WITH_DAEMON,
    change::{change, undone},
    parse, stream,
};
use crate::cli::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
    parse::{ParsedValue, prefix, values_with_warnings},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct TrustArgs {
    /// The addresses and prefixes to trust
    #[arg(
        value_name = "ADDRESS|PREFIX",
        value_parser = prefix,
        required_unless_present = "stdin",
        conflicts_with = "stdin"
    )]
    prefixes: Vec<ParsedValue<IpNet>>,

    /// Read a stream from stdin: lines `ADDRESS|PREFIX [DURATION]`, with `-ADDRESS` to trust it no more
    #[arg(long)]
    stdin: bool,

    /// How long the sources stay proven, such as 12h or 30d
    #[arg(
        long = "for",
        value_name = "DURATION",
        value_parser = parse::duration_ns,
        default_value = "30d",
        allow_hyphen_values = true
    )]
    for_ns: u64,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(in crate::cli) fn trust(args: &TrustArgs) -> anyhow::Result<()> {
    if args.stdin {
        return stream::stream(&args.read, args.for_ns, args.output.json);
    }
    let for_ns = args.for_ns;
    let request = |prefix| KnownChange::Trust { prefix, for_ns };
    let wanted = KnownChanges {
        changes: values_with_warnings(&args.prefixes)
            .into_iter()
            .map(request)
            .collect(),
        together: true,
    };
    let changed = change(&args.read, &wanted)?;
    let each = || wanted.changes.iter().zip(&changed.outcomes);
    if args.output.json {
        let reported = each().map(|(change, outcome)| {
            let prefix = change.prefix();
            json!({"prefix": prefix, "result": outcome})
        });
        print_json(&json!({
            "known": reported.collect::<Vec<_>>(),
            "ends_with_daemon": changed.ends_with_daemon,
        }))?;
    } else {
        let mut out = stdout();
        for (change, outcome) in each() {
            if let Some(line) = line(change.prefix(), outcome, for_ns) {
                writeln!(out, "{line}")?;
            }
        }
        if changed.ends_with_daemon {
            writeln!(out, "{ENDS_WITH_DAEMON}")?;
        }
    }
    let undone: Vec<_> = each()
        .filter_map(|(change, outcome)| undone(change, outcome))
        .collect();
    if !undone.is_empty() {
        bail!("{}", undone.join("\n"));
    }
    Ok(())
}

/// Describes newly proven sources; `None`: there are none.
fn line(prefix: IpNet, outcome: &KnownOutcome, for_ns: u64) -> Option<String> {
    let KnownOutcome::Trusted {
        sources, part_of, ..
    } = outcome
    else {
        return None;
    };
    let (prefix, length) = (short(prefix), duration(for_ns));
    match (sources, part_of) {
        (0, _) => None,
        (_, Some(source)) => Some(format!(
            "{prefix} is proven for {length}, and with it all of {source}, its source"
        )),
        (1, None) => Some(format!("{prefix} is proven for {length}")),
        (sources, None) => Some(format!(
            "{prefix} is proven for {length}: {} sources",
            count(*sources)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_trusted_sources() {
        let check = |prefix: &str, sources, part_of: Option<&str>, expected: Option<&str>| {
            let outcome = KnownOutcome::Trusted {
                sources,
                without_room: 0,
                part_of: part_of.map(|prefix| prefix.parse().unwrap()),
            };
            let reported = line(prefix.parse().unwrap(), &outcome, 30 * 86_400_000_000_000);
            assert_eq!(reported.as_deref(), expected);
        };
        check(
            "192.0.2.1/32",
            1,
            None,
            Some("192.0.2.1 is proven for 30 days"),
        );
        check(
            "198.18.0.0/16",
            65_536,
            None,
            Some("198.18.0.0/16 is proven for 30 days: 65 536 sources"),
        );
        check(
            "2001:db8::7/128",
            1,
            Some("2001:db8::/64"),
            Some("2001:db8::7 is proven for 30 days, and with it all of 2001:db8::/64, its source"),
        );
        check("192.0.2.1/32", 0, None, None);
    }

    #[test]
    fn says_what_it_did_not_do() {
        let reported = |prefix: &str, outcome| {
            let change = KnownChange::Trust {
                prefix: prefix.parse().unwrap(),
                for_ns: 1,
            };
            undone(&change, &outcome)
        };
        let known = |sources, without_room| KnownOutcome::Trusted {
            sources,
            without_room,
            part_of: None,
        };
        assert_eq!(reported("192.0.2.1/32", known(1, 0)), None);
        let remedy = "beside other trusted sources; raise `standing: {capacity: …}`";
        assert_eq!(
            reported("192.0.2.1/32", known(0, 1)),
            Some(format!("192.0.2.1: there is no room for it {remedy}"))
        );
        assert_eq!(
            reported("192.0.2.0/24", known(250, 6)),
            Some(format!(
                "192.0.2.0/24: there is no room for 6 of its sources {remedy}"
            ))
        );
        let refused = KnownOutcome::Refused {
            reason: "why".to_owned(),
        };
        let expected = "192.0.2.1 is not trusted: why";
        assert_eq!(reported("192.0.2.1/32", refused).as_deref(), Some(expected));
    }
}
