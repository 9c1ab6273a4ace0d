//! Policies with every kind of limit.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use ipnet::IpNet;
use limiter_common::{
    answer::Answer,
    key::MOST_BITS_BESIDE_NAMES,
    limit::{Cost, IdFormat, KeyPart, LimitId, NameKind},
    packet::TcpState,
    reason::Action,
    standing::Standing,
    strategy::{Strategy as Rule, moving_window::STAMPS},
};
use limiter_policy::policy::{
    Deny, DnsCookies, DnsMatch, DomainLabels, Fragments, IcmpTypes, Limit, Match, Mode,
    OverriddenName, Override, OverrideId, Policy, PortRange, Rate, Reserve, ReserveSize, TcpFlags,
    automatic::at_floor,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{frame, port, prefix, question, server_name};

/// The periods of rates, in nanoseconds.
pub(crate) const PERIODS: [u64; 3] = [1_000_000, 1_000_000_000, 7_777_777];

const SUBSCRIBERS: std::ops::Range<u64> = 1..4;

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let malformed = prop_oneof![3 => Just(Action::Drop), 1 => Just(Action::Pass)];
    let cookies = option::weighted(0.5, Just(DnsCookies::DEFAULT_PORT));
    let names = (
        question::zones(),
        question::public_suffixes(),
        server_name::server_names(),
    );
    let parts = (vec(limit(), 1..9), subscribers(), malformed, cookies, names);
    parts.prop_map(|(limits, subscribers, malformed, cookies, names)| {
        let (zones, public_suffixes, server_names) = names;
        let suffixes = DomainLabels::new(&public_suffixes);
        let numbered = (32..).zip(limits).map(|(id, mut limit)| {
            let is_domain = limit.name_kind() == Some(NameKind::Domain);
            // An override is for a registered domain, never for a public suffix.
            limit.overrides.retain(|other| {
                let name = other.id.name().filter(|_| is_domain);
                name.is_none_or(|one| suffixes.registered(&one.name).as_ref() == Some(&one.name))
            });
            Limit {
                id: LimitId(id),
                name: format!("Limit{id}"),
                ..limit
            }
        });
        Policy {
            subscribers,
            malformed,
            zones,
            public_suffixes,
            server_names,
            dns_cookies: cookies.map(|port| DnsCookies {
                secret_file: PathBuf::new(),
                port,
            }),
            ..Policy::from(numbered.collect::<Vec<_>>())
        }
    })
}

/// A policy and its successor. The successor has other rates and costs for the same buckets, or shares only the
/// ids.
pub(crate) fn successive() -> impl Strategy<Value = [Policy; 2]> {
    (policy(), policy(), any::<bool>()).prop_map(|(policy, other, same_buckets)| {
        let mut next = other;
        if same_buckets {
            let limits = policy.limits.iter().zip(next.limits);
            let limits = limits.map(|(limit, other)| {
                let next = Limit {
                    cost: if other.id.0.is_multiple_of(4) {
                        other.cost
                    } else {
                        limit.cost
                    },
                    strategy: if other.id.0.is_multiple_of(5) {
                        other.strategy
                    } else {
                        limit.strategy
                    },
                    default: other.default,
                    ceiling: other.ceiling,
                    ..limit.clone()
                };
                countable(next)
            });
            next = Policy {
                limits: limits.collect(),
                ..policy.clone()
            };
        }
        [policy, next]
    })
}

/// Subscribers; no prefix belongs to two.
fn subscribers() -> impl Strategy<Value = BTreeMap<u64, Vec<IpNet>>> {
    vec((prefix(), SUBSCRIBERS), 0..6).prop_map(|prefixes| {
        let mut known = BTreeSet::new();
        let mut subscribers = BTreeMap::<_, Vec<_>>::new();
        for (prefix, number) in prefixes {
            if known.insert(prefix) {
                subscribers.entry(number).or_default().push(prefix);
            }
        }
        subscribers
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    let cost = prop_oneof![
        Just(Cost::Packets),
        Just(Cost::Bytes),
        Just(Cost::NewConnections)
    ];
    let strategy = prop_oneof![
        2 => Just(Rule::Gcra),
        1 => Just(Rule::FixedWindow),
        1 => Just(Rule::MovingWindow),
        1 => Just(Rule::SlidingWindowCounter),
    ];
    let mode = prop_oneof![
        6 => Just(Mode::Enforce),
        2 => Just(Mode::Observe),
        1 => Just(Mode::Off)
    ];
    (
        id_format(),
        cost,
        strategy,
        matching(),
        mode,
        option::weighted(0.9, rate()),
        vec((prefix(), SUBSCRIBERS, rate()), 0..4),
        option::weighted(0.3, reserve()),
        (
            option::weighted(0.4, deny()),
            option::weighted(0.8, ceiling()),
            option::weighted(0.2, select(NameKind::ALL.to_vec())),
            vec(question::overridden(), 0..4),
            // Few limits may be automatic, and few of these count enough to refuse a packet.
            option::weighted(0.03, ceiling()),
        ),
    )
        .prop_map(
            |(id_format, cost, strategy, matching, mode, default, overrides, reserve, rest)| {
                let (deny, ceiling, per_name, by_name, of_all) = rest;
                let ceiling = of_all.or(ceiling);
                let (id_format, cost, strategy, matching, mode) = match of_all {
                    Some(_) => (
                        IdFormat::Total,
                        Cost::Packets,
                        Rule::Gcra,
                        Match::default(),
                        Mode::Enforce,
                    ),
                    None => (id_format, cost, strategy, matching, mode),
                };
                let per_name = per_name.filter(|_| of_all.is_none());
                let is_of_sources = match id_format.key_part() {
                    None | Some(KeyPart::Subscriber) => true,
                    Some(_) => false,
                };
                let per_name = per_name.filter(|_| is_of_sources && fits_beside_names(id_format));
                let overrides = overrides.into_iter().map(|(prefix, number, rate)| {
                    let beside_names = per_name.map_or(prefix, |_| beside_names(prefix));
                    (beside_names, number, rate)
                });
                let mut overrides = distinct(id_format, overrides.collect());
                let name_kind = per_name.or(id_format.name_kind());
                if name_kind.is_some() || id_format == IdFormat::ServerName {
                    let are_questions = name_kind == Some(NameKind::Question);
                    overrides = with_names(are_questions, &overrides, by_name);
                }
                let matching = by_one_name(id_format, name_kind, matching);
                countable(Limit {
                    per_name,
                    strategy,
                    matching,
                    mode,
                    reserve,
                    deny,
                    default,
                    overrides,
                    ceiling,
                    ..Limit::with_name("", id_format, cost)
                })
            },
        )
}

/// The answers, for all sources or by standing.
fn deny() -> impl Strategy<Value = Deny> {
    // The answer that replaces another is rarest.
    let answer = || prop_oneof![2 => select(Answer::ALL.to_vec()), 1 => Just(Answer::SynCookie)];
    let unknown = option::weighted(0.5, answer());
    (answer(), unknown).prop_map(|(other, unknown)| Deny {
        unknown,
        ..Deny::everybody(other)
    })
}

/// Shares of a bucket, which hold at every rate.
fn fractions() -> Reserve {
    let fraction = |text: &str| ReserveSize::Fraction(text.parse().expect("a percentage"));
    Reserve {
        familiar: fraction("10%"),
        fresh: fraction("20%"),
        retried: fraction("30%"),
        unknown: fraction("50%"),
    }
}

/// The tokens that must be left in a bucket, for each standing at least as many as for the one above.
fn reserve() -> impl Strategy<Value = Reserve> {
    // At most the smallest burst.
    prop::array::uniform4(0u64..40).prop_map(|mut tokens| {
        tokens.sort_unstable();
        let [familiar, fresh, retried, unknown] = tokens.map(ReserveSize::Tokens);
        Reserve {
            familiar,
            fresh,
            retried,
            unknown,
        }
    })
}

/// The highest rate of an automatic limit, in tokens a second. Some 670 frames come in a second.
fn ceiling() -> impl Strategy<Value = u64> {
    1_000u64..3_000
}

/// Gives the limit rates that its strategy can count. A moving window counts no bytes, only GCRA keeps reserves,
/// and few rates are automatic.
fn countable(mut limit: Limit) -> Limit {
    if limit.id_format != IdFormat::Total
        || limit.cost == Cost::Bytes
        || limit.mode == Mode::Observe
        || limit.strategy != Rule::Gcra
    {
        limit.ceiling = None;
    }
    if let Some(ceiling) = limit.ceiling {
        // At the lowest 100 a second, so that ten tokens are there at once.
        limit.default = Some(at_floor(ceiling / 10));
        limit.reserve = limit.reserve.map(|_| fractions());
        // It would count next to nothing.
        limit.matching.otherwise = false;
        return limit;
    }
    if limit.strategy.why_no_reserve().is_some() {
        limit.reserve = None;
    }
    if limit.strategy == Rule::MovingWindow && limit.cost == Cost::Bytes {
        limit.cost = Cost::Packets;
    }
    let overrides = limit.overrides.iter_mut().map(|other| &mut other.rate);
    for rate in limit.default.iter_mut().chain(overrides) {
        rate.burst = match (limit.strategy, limit.cost) {
            (Rule::Gcra, _) | (_, Cost::Bytes) => rate.burst,
            (Rule::MovingWindow, _) if rate.burst.is_multiple_of(7) => STAMPS,
            // Few enough to be reached.
            _ => 1 + rate.burst / 8 % 40,
        };
        if limit.strategy != Rule::Gcra {
            rate.count = rate.burst;
        }
    }
    limit
}

fn id_format() -> impl Strategy<Value = IdFormat> {
    prop_oneof![
        3 => Just(IdFormat::IpAddress),
        1 => prop_oneof![Just(8), Just(24), Just(31)]
            .prop_map(|prefix_length| IdFormat::Ipv4RangeCidr { prefix_length }),
        1 => prop_oneof![Just(16), Just(48), Just(64), Just(127)]
            .prop_map(|prefix_length| IdFormat::Ipv6RangeCidr { prefix_length }),
        1 => Just(IdFormat::RegId),
        1 => Just(IdFormat::Destination),
        1 => Just(IdFormat::Zone),
        1 => Just(IdFormat::Domain),
        1 => Just(IdFormat::Question),
        1 => Just(IdFormat::ServerName),
        1 => Just(IdFormat::Total),
    ]
}

pub(super) fn rate() -> impl Strategy<Value = Rate> {
    let period = select(PERIODS.to_vec());
    (1u64..40, 1u64..2_000, period).prop_map(|(burst, count, period_ns)| Rate {
        // In bytes, enough for some frames and too little for others.
        burst: burst * 40,
        count: count * 3,
        period_ns,
    })
}

fn matching() -> impl Strategy<Value = Match> {
    let protocol = prop_oneof![Just(6), Just(17), Just(1), Just(58), Just(132), any::<u8>()];
    let flags = (any::<u8>(), any::<u8>()).prop_map(|(set, clear)| TcpFlags {
        // Few flags, so that some segments match.
        set: set & 0x12,
        clear: clear & !set & 0x3f,
    });
    let fragments = prop_oneof![Just(Fragments::Count), Just(Fragments::Ignore)];
    (
        rarely(vec(protocol, 1..3)),
        rarely(ports()),
        rarely(ports()),
        option::weighted(0.2, flags),
        rarely(vec(prefix(), 1..4)),
        fragments,
        option::weighted(0.1, prop::sample::subsequence(Standing::ALL.to_vec(), 1..4)),
        option::weighted(
            0.1,
            prop::sample::subsequence(TcpState::NAMED.to_vec(), 1..3),
        ),
        prop::bool::weighted(0.05),
        option::weighted(0.15, question::matching()),
        option::weighted(0.15, server_name::patterns()),
        option::weighted(0.3, icmp_types()),
    )
        .prop_map(
            |(
                protocols,
                source_ports,
                destination_ports,
                tcp_flags,
                destinations,
                fragments,
                standing,
                tcp_states,
                otherwise,
                dns,
                server_names,
                icmp_types,
            )| {
                Match {
                    protocols,
                    source_ports,
                    destination_ports,
                    tcp_flags,
                    icmp_types: icmp_types.unwrap_or_default(),
                    destinations,
                    fragments,
                    standing: standing.unwrap_or_default(),
                    tcp_states: tcp_states.unwrap_or_default(),
                    server_names: server_names.unwrap_or_default(),
                    dns: dns.unwrap_or_default(),
                    otherwise,
                }
            },
        )
}

/// Types of either protocol or of both.
fn icmp_types() -> impl Strategy<Value = IcmpTypes> {
    let types = || vec(frame::message_type(), 0..5);
    (types(), types()).prop_map(|(icmp, icmpv6)| IcmpTypes { icmp, icmpv6 })
}

/// A match by questions for UDP, by server names for TCP, by types of ICMP, or by none of these: no packet has
/// two.
fn by_one_name(format: IdFormat, name_kind: Option<NameKind>, matching: Match) -> Match {
    let is_by_key = format == IdFormat::ServerName;
    if name_kind.is_some() || !is_by_key && !matching.dns.is_everything() {
        Match {
            protocols: vec![Match::UDP],
            tcp_flags: None,
            tcp_states: Vec::new(),
            icmp_types: IcmpTypes::default(),
            server_names: Vec::new(),
            ..matching
        }
    } else if is_by_key || !matching.server_names.is_empty() {
        Match {
            protocols: vec![Match::TCP],
            dns: DnsMatch::default(),
            icmp_types: IcmpTypes::default(),
            // Names decide between these limits, by separate sets.
            otherwise: false,
            ..matching
        }
    } else if !matching.icmp_types.is_empty() {
        Match {
            protocols: Vec::new(),
            source_ports: Vec::new(),
            destination_ports: Vec::new(),
            tcp_flags: None,
            tcp_states: Vec::new(),
            ..matching
        }
    } else {
        matching
    }
}

fn ports() -> impl Strategy<Value = Vec<PortRange>> {
    let range = (port(), port()).prop_map(|(one, other)| one.min(other)..=one.max(other));
    vec(range, 1..4)
}

/// Mostly empty, which means everything.
fn rarely<T: std::fmt::Debug + Clone>(
    values: impl Strategy<Value = Vec<T>>,
) -> impl Strategy<Value = Vec<T>> {
    option::weighted(0.25, values).prop_map(Option::unwrap_or_default)
}

/// Adds overrides for questions or other names, alone or beside the sources of the given overrides.
fn with_names(
    are_questions: bool,
    overrides: &[Override],
    by_name: Vec<(OverriddenName, bool, Rate)>,
) -> Vec<Override> {
    let mut all = overrides.to_vec();
    for ((mut name, is_alone, rate), number) in by_name.into_iter().zip(0..) {
        if !are_questions {
            name.question = None;
        }
        let source = overrides.get(number).filter(|_| !is_alone);
        let id = match source {
            Some(other) => other.id.with_name(name),
            None => OverrideId::Name(name),
        };
        if all.iter().all(|other| other.id != id) {
            all.push(Override {
                id,
                rate,
                comment: None,
            });
        }
    }
    all
}

/// Whether a bucket's id has room for a name beside a source in that format.
fn fits_beside_names(format: IdFormat) -> bool {
    !matches!(format, IdFormat::Ipv6RangeCidr { prefix_length } if prefix_length > MOST_BITS_BESIDE_NAMES)
}

/// Shortens a prefix so that its addresses share no bucket with others, even if each name has its own buckets.
fn beside_names(prefix: IpNet) -> IpNet {
    let longest = match prefix {
        IpNet::V4(_) => prefix.prefix_len(),
        IpNet::V6(_) => prefix.prefix_len().min(MOST_BITS_BESIDE_NAMES),
    };
    let shorter = IpNet::new(prefix.addr(), longest).expect("no longer than it was");
    shorter.trunc()
}

/// The overrides in the id format, each id once.
fn distinct(format: IdFormat, overrides: Vec<(IpNet, u64, Rate)>) -> Vec<Override> {
    let mut known = BTreeSet::new();
    let mut distinct = Vec::new();
    for (prefix, subscriber, rate) in overrides {
        let id = match format {
            IdFormat::IpAddress => OverrideId::Prefix(prefix),
            IdFormat::Ipv4RangeCidr { prefix_length }
            | IdFormat::Ipv6RangeCidr { prefix_length } => {
                match IpNet::new(prefix.addr(), prefix_length) {
                    Ok(range)
                        if prefix.addr().is_ipv4()
                            == matches!(format, IdFormat::Ipv4RangeCidr { .. }) =>
                    {
                        OverrideId::Prefix(range.trunc())
                    }
                    _ => continue,
                }
            }
            IdFormat::RegId => OverrideId::Subscriber(subscriber),
            IdFormat::Destination
            | IdFormat::Zone
            | IdFormat::Domain
            | IdFormat::Question
            | IdFormat::ServerName
            | IdFormat::Total => {
                continue;
            }
        };
        if known.insert(id.clone()) {
            distinct.push(Override {
                id,
                rate,
                comment: None,
            });
        }
    }
    distinct
}
