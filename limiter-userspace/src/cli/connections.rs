//! `limiter connections`.

use std::io::Write;

use clap::Args;
use limiter_protocol::{KeyList, KeyQuery};
use limiter_report::render::{ago, count, counted, table_without};

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
};

/// The most rows: the keys that the daemon keeps for the most limits on connections.
const MOST_ROWS: i64 = 160;

/// Shown if the policy has no limit on connections.
pub(crate) const NO_LIMIT: &str = "No limit counts open connections.";

#[derive(Debug, Args)]
pub(super) struct ConnectionsArgs {
    /// Only keys of this limit
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
    let query = KeyQuery {
        limit: args.limit,
        count: args.count,
    };
    let list = args.read.query(&query)?;
    if args.output.json {
        return print_json(&list);
    }
    print(&mut stdout(), &list)
}

fn print(out: &mut impl Write, list: &KeyList) -> anyhow::Result<()> {
    const WAITING: usize = 4;
    writeln!(out, "{}", headline(list))?;
    if list.keys.is_empty() {
        return Ok(());
    }
    let waits = list.keys.iter().any(|key| key.waiting.is_some());
    let hidden = if waits { &[][..] } else { &[WAITING] };
    let header = ["key", "limit", "open", "at most", "waiting"];
    let rows = list.keys.iter().map(|key| {
        [
            key.id.clone(),
            key.limit.clone(),
            count(key.open),
            count(key.most),
            key.waiting.map_or_else(|| "–".to_owned(), count),
        ]
    });
    writeln!(
        out,
        "{}",
        table_without(hidden, header, [2, 3, WAITING], rows)
    )?;
    Ok(())
}

/// Returns a line with the number of open connections and of their keys.
fn headline(list: &KeyList) -> String {
    let mut limits = list.limits.iter();
    let open = match (limits.next(), limits.next()) {
        (None, _) => return NO_LIMIT.to_owned(),
        (Some((name, limit)), None) => format!("{} open that {name} counts", count(limit.open)),
        (Some(_), Some(_)) => format!("{} open that limits count", count(list.counted)),
    };
    let Some(polled_ago_ns) = list.polled_ago_ns else {
        return format!("{open}; no daemon has found their keys");
    };
    let keys = list.limits.values().filter_map(|limit| limit.keys);
    let keys = usize::try_from(keys.sum::<u64>()).unwrap_or(usize::MAX);
    let keys = counted(keys, "key");
    format!("{open}, {keys}, {}", ago(polled_ago_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_protocol::{KeyStatus, OpenByLimit};

    fn list(keys: &[(&str, &str, u64, u64, Option<u64>)]) -> KeyList {
        let keys = keys
            .iter()
            .map(|(id, limit, open, most, waiting)| KeyStatus {
                limit: (*limit).to_owned(),
                id: (*id).to_owned(),
                open: *open,
                most: *most,
                waiting: *waiting,
            });
        let keys: Vec<_> = keys.collect();
        let limits = keys.iter().map(|key| {
            let of_limit = OpenByLimit {
                open: 1_234,
                keys: Some(1_000),
            };
            (key.limit.clone(), of_limit)
        });
        KeyList {
            counted: 1_234,
            polled_ago_ns: Some(430_000_000),
            limits: limits.collect(),
            keys,
        }
    }

    fn shown(list: &KeyList) -> String {
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
            "1 234 open that limits count, 2 000 keys, 430 ms ago\n\
             key                      limit      open  at most\n\
             192.0.2.7                Web          30       50\n\
             2001:db8:1234:5678::/64  PerRange  1 200    4 000\n"
        );
        two.keys[1].waiting = Some(17);
        assert!(shown(&two).contains("waiting"));
        two.polled_ago_ns = None;
        two.keys.clear();
        assert_eq!(
            shown(&two),
            "1 234 open that limits count; no daemon has found their keys\n"
        );
        let one = list(&[("192.0.2.7", "Web", 30, 50, None)]);
        let lines = "1 234 open that Web counts, 1 000 keys, 430 ms ago\nkey ";
        assert!(shown(&one).starts_with(lines), "{}", shown(&one));
        assert_eq!(shown(&list(&[])), format!("{NO_LIMIT}\n"));
    }
}
