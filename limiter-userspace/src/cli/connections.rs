//! `limiter connections`.

use std::io::Write;

use clap::Args;

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
    render::{ago, count, counted, table_without},
};
use crate::protocol::{OwnerList, OwnerQuery};

/// The most rows: the owners that the daemon keeps for the most limits on connections.
const MOST_ROWS: i64 = 160;

/// Shown if the policy has no limit on connections.
pub(crate) const NO_LIMIT: &str = "No limit counts open connections.";

#[derive(Debug, Args)]
pub(super) struct ConnectionsArgs {
    /// Only owners by this limit
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,

    /// Show at most this many rows
    #[arg(
        short = 'n',
        long,
        value_name = "NUMBER",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=MOST_ROWS)
    )]
    count: u32,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn connections(args: ConnectionsArgs) -> anyhow::Result<()> {
    let query = OwnerQuery {
        limit: args.limit,
        count: args.count,
    };
    let list = args.read.ask(&query)?;
    if args.output.json {
        return print_json(&list);
    }
    print(&mut stdout(), &list)
}

fn print(out: &mut impl Write, list: &OwnerList) -> anyhow::Result<()> {
    const WAITING: usize = 4;
    writeln!(out, "{}", headline(list))?;
    if list.owners.is_empty() {
        return Ok(());
    }
    let waits = list.owners.iter().any(|owner| owner.waiting.is_some());
    let hidden = if waits { &[][..] } else { &[WAITING] };
    let header = ["owner", "limit", "open", "at most", "waiting"];
    let rows = list.owners.iter().map(|owner| {
        [
            owner.id.clone(),
            owner.limit.clone(),
            count(owner.open),
            count(owner.most),
            owner.waiting.map_or_else(|| "–".to_owned(), count),
        ]
    });
    writeln!(
        out,
        "{}",
        table_without(hidden, header, [2, 3, WAITING], rows)
    )?;
    Ok(())
}

/// Returns a line with the number of open connections and of their owners.
fn headline(list: &OwnerList) -> String {
    let mut limits = list.limits.iter();
    let open = match (limits.next(), limits.next()) {
        (None, _) => return NO_LIMIT.to_owned(),
        (Some((name, limit)), None) => format!("{} open that {name} counts", count(limit.open)),
        (Some(_), Some(_)) => format!("{} open that limits count", count(list.counted)),
    };
    let Some(looked_ago_ns) = list.looked_ago_ns else {
        return format!("{open}; no daemon has found their owners");
    };
    let owners = list.limits.values().filter_map(|limit| limit.owners);
    let owners = usize::try_from(owners.sum::<u64>()).unwrap_or(usize::MAX);
    let owners = counted(owners, "owner");
    format!("{open}, {owners}, {}", ago(looked_ago_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{OpenByLimit, OwnerStatus};

    fn list(owners: &[(&str, &str, u64, u64, Option<u64>)]) -> OwnerList {
        let owners = owners
            .iter()
            .map(|(id, limit, open, most, waiting)| OwnerStatus {
                limit: (*limit).to_owned(),
                id: (*id).to_owned(),
                open: *open,
                most: *most,
                waiting: *waiting,
            });
        let owners: Vec<_> = owners.collect();
        let limits = owners.iter().map(|owner| {
            let of_limit = OpenByLimit {
                open: 1_234,
                owners: Some(1_000),
            };
            (owner.limit.clone(), of_limit)
        });
        OwnerList {
            counted: 1_234,
            looked_ago_ns: Some(430_000_000),
            limits: limits.collect(),
            owners,
        }
    }

    fn shown(list: &OwnerList) -> String {
        let mut out = Vec::new();
        print(&mut out, list).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_told() {
        let mut two = list(&[
            ("192.0.2.7", "Web", 30, 50, None),
            ("2001:db8:1234:5678::/64", "PerRange", 1_200, 4_000, None),
        ]);
        assert_eq!(
            shown(&two),
            "1 234 open that limits count, 2 000 owners, 430 ms ago\n\
             owner                    limit      open  at most\n\
             192.0.2.7                Web          30       50\n\
             2001:db8:1234:5678::/64  PerRange  1 200    4 000\n"
        );
        two.owners[1].waiting = Some(17);
        assert!(shown(&two).contains("waiting"));
        two.looked_ago_ns = None;
        two.owners.clear();
        assert_eq!(
            shown(&two),
            "1 234 open that limits count; no daemon has found their owners\n"
        );
        let one = list(&[("192.0.2.7", "Web", 30, 50, None)]);
        let lines = "1 234 open that Web counts, 1 000 owners, 430 ms ago\nowner ";
        assert!(shown(&one).starts_with(lines), "{}", shown(&one));
        assert_eq!(shown(&list(&[])), format!("{NO_LIMIT}\n"));
    }
}
