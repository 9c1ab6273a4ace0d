//! The precedence of lists and bans: random policies in both engines, compared with a model that
//! checks each prefix of each list.

use std::net::IpAddr;

use anyhow::Result;
use ipnet::IpNet;
use limiter_common::{
    limit::{BUILT_IN, LimitId},
    reason::Reason,
};
use limiter_policy::policy::{Limit, List, Match, Mode, Policy, Rate};
use proptest::{prelude::*, sample::subsequence, test_runner::TestRunner};
use testbed::Frame;

use crate::{
    differential::generate,
    engine::{self, Engines},
    random,
};

const POLICIES: usize = 15;

/// The maximum number of policies if some outcome has not occurred.
const MOST_POLICIES: usize = 40 * POLICIES;

const FRAMES: usize = 300;

const LISTS: usize = 4;

/// Passes all packets of the test.
const RATE: Rate = Rate {
    burst: 1_000_000,
    count: 1_000_000,
    period_ns: 1_000_000_000,
};

/// The lists that exclude and the lists that block.
#[derive(Clone, Debug)]
struct Uses {
    exclude: Vec<usize>,
    block: Vec<usize>,
}

#[derive(Debug)]
struct Case {
    lists: Vec<Vec<IpNet>>,
    global: Uses,
    /// Each limit's lists, and its other properties.
    limits: Vec<(Uses, LimitCase)>,
    bans: Vec<IpNet>,
}

#[derive(Clone, Debug)]
struct LimitCase {
    mode: Mode,
    has_rate: bool,
    /// The only port that it counts packets to.
    port: Option<u16>,
}

fn case() -> impl Strategy<Value = Case> {
    let prefixes = |most| prop::collection::vec(random::prefix(), 0..most);
    let mode =
        prop_oneof![3 => Just(Mode::Enforce), 2 => Just(Mode::Observe), 1 => Just(Mode::Off)];
    let own =
        (mode, any::<bool>(), prop::option::of(Just(53))).prop_map(|(mode, has_rate, port)| {
            LimitCase {
                mode,
                has_rate,
                port,
            }
        });
    (
        prop::collection::vec(prefixes(5), LISTS),
        uses(0.3),
        prop::collection::vec((uses(0.6), own), 1..5),
        prefixes(3),
    )
        .prop_map(|(lists, global, limits, bans)| Case {
            lists,
            global,
            limits,
            bans,
        })
}

/// Draws lists for each of the two uses with this probability.
fn uses(probability: f64) -> impl Strategy<Value = Uses> {
    let some = move || {
        prop::option::weighted(
            probability,
            subsequence((0..LISTS).collect::<Vec<_>>(), 1..=2),
        )
    };
    (some(), some()).prop_map(|(exclude, block)| Uses {
        exclude: exclude.unwrap_or_default(),
        block: block.unwrap_or_default(),
    })
}

/// The expected outcome for a packet.
#[derive(Debug, PartialEq, Eq)]
struct ExpectedOutcome {
    reason: Reason,
    refused_by: Option<u32>,
    would_drop: u64,
}

impl Case {
    fn policy(&self) -> Policy {
        let names = |lists: &[usize]| lists.iter().map(ToString::to_string).collect();
        let limits = (32..).zip(&self.limits).map(|(id, (uses, own))| Limit {
            id: LimitId(id),
            name: format!("Limit{id}"),
            mode: own.mode,
            matching: Match {
                destination_ports: own.port.map(|port| port..=port).into_iter().collect(),
                ..Match::default()
            },
            exclude: names(&uses.exclude),
            block: names(&uses.block),
            ..Limit::of_built_in(&BUILT_IN[0], own.has_rate.then_some(RATE))
        });
        let lists = self.lists.iter().enumerate();
        Policy {
            lists: lists
                .map(|(number, prefixes)| List::new(number.to_string(), prefixes))
                .collect(),
            exclude: names(&self.global.exclude),
            block: names(&self.global.block),
            ..engine::policy(limits)
        }
    }

    fn meant(&self, source: IpAddr, port: u16) -> ExpectedOutcome {
        let have = |lists: &[usize]| {
            let mut prefixes = lists.iter().flat_map(|list| &self.lists[*list]);
            prefixes.any(|prefix| prefix.contains(&source))
        };
        let mut meant = ExpectedOutcome {
            reason: Reason::Unlimited,
            refused_by: None,
            would_drop: 0,
        };
        if have(&self.global.exclude) {
            meant.reason = Reason::Excluded;
            return meant;
        }
        if have(&self.global.block) {
            meant.reason = Reason::BlockedList;
            return meant;
        }
        if self.bans.iter().any(|ban| ban.contains(&source)) {
            meant.reason = Reason::Banned;
            return meant;
        }
        for (limit_index, (uses, own)) in (0..).zip(&self.limits) {
            let blocks = have(&uses.block);
            let counts = own.mode != Mode::Off
                && own.port.is_none_or(|counted| counted == port)
                && (own.has_rate || blocks)
                && !have(&uses.exclude);
            if !counts {
                continue;
            }
            if meant.reason == Reason::Unlimited {
                meant.reason = Reason::WithinLimits;
            }
            if blocks && own.mode == Mode::Observe {
                meant.would_drop |= 1 << limit_index;
            } else if blocks && meant.refused_by.is_none() {
                meant.reason = Reason::BlockedList;
                meant.refused_by = Some(limit_index);
            }
        }
        meant
    }
}

#[test]
fn excluded_blocked_banned_and_by_a_limit_in_this_order() -> Result<()> {
    let mut runner = TestRunner::default();
    let frames = (random::address(), prop_oneof![Just(53), Just(443)]);
    let frames = generate(&prop::collection::vec(frames, FRAMES), &mut runner);
    let mut engines = Engines::new(&engine::policy([]))?;
    let mut missing = vec![
        (Reason::Excluded, false, false),
        (Reason::BlockedList, false, false),
        (Reason::Banned, false, false),
        (Reason::BlockedList, true, false),
        (Reason::BlockedList, true, true),
        (Reason::WithinLimits, false, false),
        (Reason::WithinLimits, false, true),
        (Reason::Unlimited, false, false),
    ];
    for number in 0..MOST_POLICIES {
        // Rare outcomes take more policies.
        if number >= POLICIES && missing.is_empty() {
            break;
        }
        let case = generate(&case(), &mut runner);
        engines.replace(&case.policy())?;
        for ban in &case.bans {
            engines.ban(*ban, u64::MAX)?;
        }
        for (source, port) in &frames {
            let frame = frame(*source, *port);
            let verdict = engines.verdict(0, &frame);
            let found = ExpectedOutcome {
                reason: verdict.reason,
                refused_by: verdict.refused_by(),
                would_drop: verdict.would_drop,
            };
            let meant = case.meant(*source, *port);
            assert_eq!(found, meant, "{source} to port {port} in {case:#?}");
            let seen = (
                meant.reason,
                meant.refused_by.is_some(),
                meant.would_drop != 0,
            );
            missing.retain(|occurred| *occurred != seen);
        }
        for ban in &case.bans {
            engines.unban(*ban)?;
        }
        engines.assert_same_state();
    }
    assert!(missing.is_empty(), "{missing:?} never occurred");
    Ok(())
}

fn frame(source: IpAddr, port: u16) -> Vec<u8> {
    let destination = match source {
        IpAddr::V4(_) => [192, 0, 2, 1].into(),
        IpAddr::V6(_) => [0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1].into(),
    };
    let frame = Frame::new(source, destination).udp(4_000, port, b"");
    frame.expect("a frame")
}
