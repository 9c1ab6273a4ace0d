//! The lists in `limiter check`.

use std::io::{self, Write};

use ipnet::IpNet;
use jiff::Timestamp;
use limiter_policy::{
    config::Config,
    lists::{Bounds, Coverage, FeedReport},
    policy::{List, ListUse, Overlap, Policy, Purpose},
};
use limiter_report::render::{count, table};
use serde::Serialize;

use crate::cli::output;

/// The lists of a configuration, and where they overlap.
#[derive(Serialize)]
pub(super) struct CheckedLists<'a> {
    lists: Vec<CheckedList<'a>>,
    overlaps: Vec<Overlap<'a>>,
}

/// A list. The number of IPv6 addresses may not fit in 64 bits.
#[derive(Serialize)]
struct CheckedList<'a> {
    list: &'a str,
    ipv4_prefixes: usize,
    ipv6_prefixes: usize,
    ipv4_addresses: u128,
    ipv6_addresses: u128,
    used_by: Vec<ListUse<'a>>,
    files: Vec<&'a FeedReport>,
}

impl<'a> CheckedLists<'a> {
    pub(super) fn of(config: &'a Config) -> Self {
        let policy = &config.policy;
        let lists = policy.lists.iter().map(|list| {
            let feeds = config.feeds.get(&list.name).into_iter().flatten();
            let uses = policy.list_uses();
            CheckedList::new(
                list,
                uses.filter(|one| one.list == list.name).collect(),
                feeds.map(|feed| &feed.report).collect(),
            )
        });
        Self {
            lists: lists.collect(),
            overlaps: policy.overlaps(),
        }
    }

    /// Warns on stderr of probable mistakes.
    pub(super) fn warn(&self, config: &Config, now: Timestamp) {
        let sources = config.lists.iter();
        let of_feeds = sources.flat_map(|source| {
            let feeds = config.feeds.get(&source.name).into_iter().flatten();
            feeds.flat_map(|feed| source.warnings(&feed.report, now))
        });
        let unused = config.policy.unused_lists().map(|list| {
            format!(
                "nothing uses the list {}: no 'exclude', 'block', 'never-ban' or 'proven' of a \
                 'standing' in use names it",
                list.name
            )
        });
        let overlaps = self.overlaps.iter().map(ToString::to_string);
        let wide = wide(&config.policy).into_iter();
        for warning in of_feeds.chain(unused).chain(overlaps).chain(wide) {
            output::warn(&warning);
        }
    }

    /// Prints a table, if there are lists.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        if self.lists.is_empty() {
            return Ok(());
        }
        let header = [
            "list",
            "IPv4 prefixes",
            "addresses",
            "IPv6 prefixes",
            "addresses",
            "used by",
        ];
        let rows = self.lists.iter().map(|list| {
            let uses: Vec<String> = list.used_by.iter().map(ToString::to_string).collect();
            [
                list.list.to_owned(),
                count(list.ipv4_prefixes as u64),
                addresses(list.ipv4_addresses),
                count(list.ipv6_prefixes as u64),
                addresses(list.ipv6_addresses),
                uses.join(", "),
            ]
        });
        writeln!(out, "{}", table(header, [1, 2, 3, 4], rows))
    }
}

impl<'a> CheckedList<'a> {
    fn new(list: &'a List, used_by: Vec<ListUse<'a>>, files: Vec<&'a FeedReport>) -> Self {
        let of = |is_of: fn(&&IpNet) -> bool| {
            let prefixes = list.prefixes.iter().filter(is_of);
            // The size of all of IPv6 exceeds `u128::MAX` by one.
            prefixes.fold((0, 0_u128), |(prefixes, addresses), prefix| {
                (prefixes + 1, addresses.saturating_add(size(*prefix)))
            })
        };
        let (ipv4_prefixes, ipv4_addresses) = of(|prefix| matches!(prefix, IpNet::V4(_)));
        let (ipv6_prefixes, ipv6_addresses) = of(|prefix| matches!(prefix, IpNet::V6(_)));
        Self {
            list: &list.name,
            ipv4_prefixes,
            ipv6_prefixes,
            ipv4_addresses,
            ipv6_addresses,
            used_by,
            files,
        }
    }
}

/// Warns if the lists that apply to all packets together cover more than the feeds of one list may. Each alone
/// may be harmless, while together they disable the limiter or cut off the host.
fn wide(policy: &Policy) -> Vec<String> {
    let mut warnings = Vec::new();
    let standing = policy.standing_in_use().unwrap_or_default();
    for (purpose, names, consequence) in [
        (Purpose::Exclude, &policy.exclude, "none of them is limited"),
        (Purpose::Block, &policy.block, "all of them are dropped"),
        (
            Purpose::Proven,
            &standing.proven,
            "a forger who draws addresses at random draws proven ones",
        ),
    ] {
        let lists = names.iter().filter_map(|name| policy.list(name));
        let prefixes: Vec<IpNet> = lists.flat_map(|list| list.prefixes.clone()).collect();
        let covers = Coverage::of(&IpNet::aggregate(&prefixes));
        if let Err(excess) = Bounds::default().check_coverage(covers) {
            warnings.push(format!(
                "the lists under `{}` together cover {} of {}: {consequence}",
                purpose.name(),
                excess.fraction,
                excess.space(),
            ));
        }
    }
    warnings
}

/// Returns the number of addresses in a prefix.
fn size(prefix: IpNet) -> u128 {
    let host_bits = prefix.max_prefix_len() - prefix.prefix_len();
    1_u128.checked_shl(host_bits.into()).unwrap_or(u128::MAX)
}

/// Formats a number of addresses, which for IPv6 may be too large to read.
fn addresses(number: u128) -> String {
    match u64::try_from(number) {
        Ok(number) if number < 1 << 40 => count(number),
        _ => format!("≥ 2^{}", number.ilog2()),
    }
}

#[cfg(test)]
mod tests {
    use super::wide;
    use limiter_policy::testing;

    #[track_caller]
    fn check(uses: &str, expected: &[&str]) {
        let configuration = format!(
            "lists: [{{name: one, cidr: [0.0.0.0/3, 2a00::/13]}}, {{name: other, cidr: [32.0.0.0/3, \
             2a08::/13]}}, {{name: all, cidr: 0.0.0.0/0}}]\n{uses}\n\
             limits: {{Web: {{id: total, cost: packets, burst: 1000, count: 1, period: 1s, block: all, \
             reserve: {{unknown: 50%}}}}}}\n"
        );
        let policy = testing::policy(&configuration);
        assert_eq!(wide(&policy), expected);
    }

    #[test]
    fn lists_are_added_up() {
        check("exclude: one\nblock: other\nstanding: {proven: one}", &[]);
        check(
            "standing: {proven: [one, other]}",
            &[
                "the lists under `standing.proven` together cover 25% of all IPv4 addresses: a forger \
                 who draws addresses at random draws proven ones",
            ],
        );
        check(
            "block: [one, other]",
            &[
                "the lists under `block` together cover 25% of all IPv4 addresses: all of them are dropped",
            ],
        );
        check(
            "exclude: all\nblock: one",
            &[
                "the lists under `exclude` together cover 100% of all IPv4 addresses: none of them is \
               limited",
            ],
        );
    }
}
