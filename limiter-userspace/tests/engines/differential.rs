//! Random frames and random policies through both engines.

use anyhow::Result;
use ipnet::IpNet;
use limiter_common::limit::{BUILT_IN, IdFormat};
use limiter_userspace::policy::{Limit, Override, Policy, Rate};
use proptest::{prelude::*, sample::subsequence, strategy::ValueTree, test_runner::TestRunner};
use testbed::{Frame, Tag};

use crate::engine::Engines;

const POLICIES: usize = 20;
const FRAMES: usize = 500;

/// Few hosts, so that they meet in their buckets.
fn source() -> impl Strategy<Value = std::net::IpAddr> {
    prop_oneof![
        (0u8..3, 0u8..4).prop_map(|(net, host)| [10, 0, net, host].into()),
        (0u16..3, 0u16..3, 0u16..3)
            .prop_map(|(net, sub, host)| [0x2001, 0xdb8, net, sub, 0, 0, 0, host].into()),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    let period = prop_oneof![Just(1_000_000u64), Just(1_000_000_000), Just(7_777_777)];
    (1u64..40, 1u64..2_000, period).prop_map(|(burst, count, period_ns)| Rate {
        // Enough for some frames and too little for others, where bytes are counted.
        burst: burst * 40,
        count: count * 37,
        period_ns,
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let limits = subsequence(BUILT_IN.to_vec(), 1..=BUILT_IN.len());
    limits.prop_flat_map(|limits| {
        let limits: Vec<_> = limits
            .into_iter()
            .map(|built_in| {
                let overrides = prop::collection::vec((source(), rate()), 0..4);
                (prop::option::weighted(0.9, rate()), overrides).prop_map(
                    move |(default, overrides)| Limit {
                        name: built_in.name.to_owned(),
                        id: built_in.id,
                        id_format: built_in.id_format,
                        cost: built_in.cost,
                        default,
                        overrides: distinct(built_in.id_format, overrides),
                    },
                )
            })
            .collect();
        limits.prop_map(|limits| Policy { limits })
    })
}

/// The overrides whose id is of the format, each id once.
fn distinct(format: IdFormat, overrides: Vec<(std::net::IpAddr, Rate)>) -> Vec<Override> {
    let mut ids: Vec<Override> = Vec::new();
    for (source, rate) in overrides {
        let length = if source.is_ipv4() {
            format.ipv4_prefix_length()
        } else {
            format.ipv6_prefix_length()
        };
        let Some(id) = length.and_then(|length| IpNet::new(source, length).ok()) else {
            continue;
        };
        let id = id.trunc();
        if ids.iter().all(|known| known.id != id) {
            ids.push(Override {
                id,
                rate,
                comment: None,
            });
        }
    }
    ids
}

/// A good frame, of which some are then spoilt.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let good = (source(), any::<bool>(), 0usize..3, 0usize..600).prop_map(
        |(source, tcp, tags, payload)| {
            let destination = if source.is_ipv4() {
                [10, 9, 9, 9].into()
            } else {
                [0x2001, 0xdb8, 99, 0, 0, 0, 0, 1].into()
            };
            let mut frame = Frame::new(source, destination);
            for _ in 0..tags {
                frame = frame.tagged(Tag::Customer(5));
            }
            let bytes = if tcp {
                frame.tcp_syn(1, 2, 0)
            } else {
                frame.udp(1, 2, &vec![0; payload])
            };
            bytes.expect("a frame of one family")
        },
    );
    let spoilt = prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()));
    let cut = prop::option::weighted(0.1, any::<prop::sample::Index>());
    (good, spoilt, cut).prop_map(|(mut frame, spoilt, cut)| {
        if let Some((place, value)) = spoilt {
            let headers = frame.len().min(80);
            frame[place.index(headers)] = value;
        }
        if let Some(place) = cut {
            // The kernel hands no program less than an Ethernet header.
            frame.truncate(14 + place.index(frame.len() - 13));
        }
        frame
    })
}

#[test]
fn kernel_and_native_agree() -> Result<()> {
    let mut runner = TestRunner::default();
    let traffic = prop::collection::vec((0u64..3_000_000, frame()), FRAMES);
    for _ in 0..POLICIES {
        let policy = generate(&policy(), &mut runner);
        // Shown when a frame below fails.
        println!("{policy:#?}");
        let mut engines = Engines::new(&policy)?;
        let mut now = 0;
        for (step, frame) in generate(&traffic, &mut runner) {
            now += step;
            engines.judge(now, &frame);
        }
        engines.assert_same_state();
    }
    Ok(())
}

/// Values without shrinking: each costs a program load, and a failure prints its frame.
fn generate<T>(strategy: &impl Strategy<Value = T>, runner: &mut TestRunner) -> T {
    strategy
        .new_tree(runner)
        .expect("the strategies reject nothing")
        .current()
}
