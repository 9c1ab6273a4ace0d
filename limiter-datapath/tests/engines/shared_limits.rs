//! Limits that a fleet shares. In both engines, packets find the share in force, a key's own or the minimum
//! share, and record their demand.

use std::{collections::HashMap, net::IpAddr};

use anyhow::{Result, bail};
use limiter_common::{
    key::BucketKey,
    limit::{BUILT_IN, Cost, IdFormat, LimitId},
    reason::Reason::{OverLimit, Reserved, WithinLimits},
    strategy::gcra::{KeyShare, Parts, ShareWord},
};
use limiter_datapath::kernel::DatapathError;
use limiter_policy::{
    config::Store,
    policy::{
        Limit, MOST_KEYS, Mode, Override, OverrideId, Rate, Reserve, ReserveSize as Part,
        shared_limits::minimum_share_of,
    },
};
use proptest::{prelude::*, test_runner::TestRunner};
use testbed::Frame;

use crate::{
    differential::generate,
    engine::{Engines, START, policy},
};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

const ID: LimitId = LimitId(32);
const NODES: u32 = 2;
/// A fortieth of it is 100 tokens at once.
const RATE: Rate = Rate {
    burst: 4_000,
    count: 40_000,
    period_ns: SECOND,
};

fn shared_limit(id_format: IdFormat, cost: Cost, rate: Rate) -> Limit {
    Limit {
        name: "All".to_owned(),
        id: ID,
        id_format,
        cost,
        fleet_nodes: Some(NODES),
        ..Limit::of_built_in(&BUILT_IN[0], Some(rate))
    }
}

fn frame(source: &str, payload: &[u8]) -> Result<Vec<u8>> {
    let source: IpAddr = source.parse()?;
    let to = if source.is_ipv4() {
        "198.51.100.1"
    } else {
        "2001:db8:ffff::1"
    };
    Frame::new(source, to.parse()?).udp(1, 2, payload)
}

/// That many hundredths of the whole.
fn percent(percent: u32) -> Parts {
    Parts::new(percent * (Parts::WHOLE.number() / 100)).expect("a share")
}

/// The word of a share that holds until `offset_ns` after the start of the engines' clocks, or a little shorter.
const fn until(share: Parts, offset_ns: u64) -> ShareWord {
    ShareWord::new(share, START + offset_ns)
}

fn in_both_stores(check: impl Fn(Store) -> Result<()>) -> Result<()> {
    check(Store::Table)?;
    check(Store::Hash)
}

/// Sends packets `offset_ns` after the start of the engines' clocks; returns how many pass.
fn passing(engines: &mut Engines, offset_ns: u64, source: &str, packets: usize) -> Result<usize> {
    let frame = frame(source, b"")?;
    let reasons = (0..packets).map(|_| engines.judge(offset_ns, &frame));
    Ok(reasons.filter(|reason| *reason == WithinLimits).count())
}

fn of_source(source: &str, prefix_length: u8) -> Result<BucketKey> {
    let source: IpAddr = source.parse()?;
    Ok(BucketKey::of_source(ID, source.into(), prefix_length))
}

#[test]
fn a_share_decides_until_it_ends() -> Result<()> {
    let limit = shared_limit(IdFormat::Total, Cost::Packets, RATE);
    in_both_stores(|store| {
        let mut engines = Engines::with(&policy([limit.clone()]), store)?;
        // The host is a key like any other.
        let (all, host) = ("192.0.2.1", BucketKey::of_host(ID));
        assert_eq!(passing(&mut engines, 0, all, 120)?, 100, "a fortieth");
        assert_eq!(engines.take_wanting(), HashMap::from([(host, 20)]));
        let set = |engines: &Engines, share, after| {
            let own = KeyShare::new(until(share, 10 * SECOND), after);
            engines.set_key_share(host, Some(own))
        };
        set(&engines, percent(50), percent(10))?;
        assert_eq!(passing(&mut engines, SECOND, all, 2_100)?, 2_000, "a half");
        assert_eq!(passing(&mut engines, SECOND + 10 * MS, all, 300)?, 200);
        set(&engines, Parts::WHOLE, percent(10))?;
        assert_eq!(passing(&mut engines, 2 * SECOND, all, 4_100)?, 4_000);
        set(&engines, Parts::LEAST, percent(10))?;
        let least = passing(&mut engines, 3 * SECOND, all, 120)?;
        assert_eq!(least, 100, "never less than the minimum");
        set(&engines, percent(25), percent(10))?;
        assert_eq!(passing(&mut engines, 9 * SECOND, all, 1_100)?, 1_000);
        assert_eq!(passing(&mut engines, 10 * SECOND, all, 500)?, 400, "over");
        let wanted = 2_100 + 300 + 4_100 + 120 + 1_100 + 500;
        assert_eq!(engines.key_shares()[&host].wanted, wanted);
        assert!(engines.take_wanting().is_empty());
        engines.assert_same_state();
        Ok(())
    })
}

/// The stores take turns.
#[test]
fn a_key_has_its_own_share_or_the_minimum() -> Result<()> {
    let formats = [
        (IdFormat::IpAddress, "192.0.2.1", 32, "192.0.2.2"),
        (IdFormat::IpAddress, "2001:db8::1", 128, "2001:db8::2"),
        (
            IdFormat::Ipv4RangeCidr { prefix_length: 20 },
            "192.0.2.1",
            20,
            "192.0.32.1",
        ),
        (
            IdFormat::Ipv6RangeCidr { prefix_length: 56 },
            "2001:db8::1",
            56,
            "2001:db8:0:100::1",
        ),
    ];
    let stores = [Store::Table, Store::Hash].into_iter().cycle();
    for ((id_format, hot, prefix_length, cold), store) in formats.into_iter().zip(stores) {
        let limit = shared_limit(id_format, Cost::Packets, RATE);
        let mut engines = Engines::with(&policy([limit.clone()]), store)?;
        let (of_hot, of_cold) = (
            of_source(hot, prefix_length)?,
            of_source(cold, prefix_length)?,
        );
        for source in [hot, cold] {
            assert_eq!(
                passing(&mut engines, 0, source, 130)?,
                100,
                "the minimum share"
            );
        }
        let wanting = HashMap::from([(of_hot, 30), (of_cold, 30)]);
        assert_eq!(engines.take_wanting(), wanting);
        assert!(engines.take_wanting().is_empty());
        // One share until its end, and another afterwards.
        let own = KeyShare::new(until(percent(50), 5 * SECOND), percent(5));
        engines.set_key_share(of_hot, Some(own))?;
        assert_eq!(passing(&mut engines, 2 * SECOND, hot, 2_500)?, 2_000);
        assert_eq!(passing(&mut engines, 2 * SECOND, cold, 200)?, 100);
        assert_eq!(passing(&mut engines, 5 * SECOND, hot, 300)?, 200);
        assert_eq!(passing(&mut engines, 5 * SECOND, cold, 200)?, 100);
        assert_eq!(engines.take_wanting(), HashMap::from([(of_cold, 200)]));
        let shares = engines.key_shares();
        assert_eq!(shares[&of_hot].wanted, 2_800);
        // Another share keeps the count. Without its own share, the key has the minimum again.
        let whole = KeyShare::new(ShareWord::forever(Parts::WHOLE), Parts::WHOLE);
        engines.set_key_share(of_hot, Some(whole))?;
        assert_eq!(passing(&mut engines, 7 * SECOND, hot, 4_100)?, 4_000);
        assert_eq!(engines.key_shares()[&of_hot].wanted, 6_900);
        engines.set_key_share(of_hot, None)?;
        assert_eq!(passing(&mut engines, 9 * SECOND, hot, 110)?, 100);
        assert_eq!(engines.take_wanting(), HashMap::from([(of_hot, 10)]));
        assert!(engines.key_shares().is_empty());
        engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn an_override_is_shared_likewise() -> Result<()> {
    let half = Override {
        id: OverrideId::Prefix("192.0.2.1/32".parse()?),
        rate: Rate {
            burst: 2_000,
            count: 3,
            ..RATE
        },
        comment: None,
    };
    let limit = Limit {
        overrides: vec![half],
        ..shared_limit(IdFormat::IpAddress, Cost::Packets, RATE)
    };
    in_both_stores(|store| {
        let mut engines = Engines::with(&policy([limit.clone()]), store)?;
        assert_eq!(passing(&mut engines, 0, "192.0.2.1", 130)?, 50);
        assert_eq!(passing(&mut engines, 0, "192.0.2.2", 130)?, 100);
        let own = KeyShare::new(ShareWord::forever(percent(10)), percent(10));
        engines.set_key_share(of_source("192.0.2.1", 32)?, Some(own))?;
        assert_eq!(
            passing(&mut engines, 1_000 * SECOND, "192.0.2.1", 220)?,
            200
        );
        engines.assert_same_state();
        Ok(())
    })
}

/// At 20 GB/s, a byte costs one tick, and two ticks in a share. So a frame's cost is rounded, not a byte's.
#[test]
fn bytes_are_shared_to_a_tick_of_each_frame() -> Result<()> {
    let rate = Rate {
        burst: 1_000_000,
        count: 20_000_000_000,
        period_ns: SECOND,
    };
    let limit = shared_limit(IdFormat::IpAddress, Cost::Bytes, rate);
    let frame = frame("192.0.2.1", &[0; 958])?;
    assert_eq!(frame.len(), 1_000);
    in_both_stores(|store| {
        let mut engines = Engines::with(&policy([limit.clone()]), store)?;
        let passing = |engines: &mut Engines, offset_ns| {
            let reasons = (0..1_010).map(|_| engines.judge(offset_ns, &frame));
            reasons.filter(|reason| *reason == WithinLimits).count()
        };
        assert_eq!(passing(&mut engines, 0), 25, "a fortieth");
        let key = of_source("192.0.2.1", 32)?;
        assert_eq!(engines.take_wanting(), HashMap::from([(key, 985)]));
        let set = |engines: &Engines, share| {
            let own = KeyShare::new(ShareWord::forever(share), share);
            engines.set_key_share(key, Some(own))
        };
        set(&engines, Parts::of_ratio(1, 3).expect("a share"))?;
        assert_eq!(passing(&mut engines, SECOND), 333);
        set(&engines, percent(99))?;
        let nearly_all = passing(&mut engines, 2 * SECOND);
        assert_eq!(nearly_all, 989, "a tick less for each");
        set(&engines, percent(30))?;
        assert_eq!(passing(&mut engines, 3 * SECOND), 299);
        assert_eq!(engines.key_shares()[&key].wanted, 3 * 1_010_000);
        engines.assert_same_state();
        Ok(())
    })
}

#[test]
fn a_reserve_is_a_part_of_the_share() -> Result<()> {
    let limit = Limit {
        reserve: Some(Reserve {
            familiar: Part::NOTHING,
            fresh: Part::NOTHING,
            retried: Part::NOTHING,
            unknown: Part::Fraction("50%".parse()?),
        }),
        ..shared_limit(IdFormat::Destination, Cost::Packets, RATE)
    };
    in_both_stores(|store| {
        let mut engines = Engines::with(&policy([limit.clone()]), store)?;
        assert_eq!(passing(&mut engines, 0, "192.0.2.1", 60)?, 50);
        assert_eq!(engines.judge(0, &frame("192.0.2.1", b"")?), Reserved);
        // A key also has demand if its source gives way.
        let [wanting] = engines.take_wanting().into_iter().collect::<Vec<_>>()[..] else {
            bail!("the destination is one key");
        };
        assert_eq!(wanting.1, 11);
        let own = KeyShare::new(ShareWord::forever(percent(10)), percent(10));
        engines.set_key_share(wanting.0, Some(own))?;
        // Too late to count as a retry of the refused packets.
        assert_eq!(passing(&mut engines, 20 * SECOND, "192.0.2.1", 250)?, 200);
        engines.assert_same_state();
        Ok(())
    })
}

/// A share's number passes from one key to another, and no data of the first stays for the second.
#[test]
fn there_is_room_for_many_keys() -> Result<()> {
    let limit = shared_limit(IdFormat::IpAddress, Cost::Packets, RATE);
    let engines = Engines::new(&policy([limit]))?;
    let maps = engines.source_maps().key_shares();
    let key = |number: u32| {
        BucketKey::new(
            ID,
            of_source("192.0.2.1", 32).unwrap().key_kind(),
            u64::from(number) << 32,
            0,
        )
    };
    let share = KeyShare::new(ShareWord::forever(percent(10)), percent(3));
    let all: Vec<_> = (0..MOST_KEYS).map(|number| (key(number), share)).collect();
    maps.set(&all)?;
    let numbers = || -> Result<HashMap<u32, BucketKey>> {
        let mut numbers = HashMap::new();
        maps.each(|number, bucket, _| {
            assert_eq!(numbers.insert(number, *bucket), None);
        })?;
        let known = maps.numbers_of(numbers.values())?;
        assert!(known.into_iter().eq(numbers.keys().copied().map(Some)));
        Ok(numbers)
    };
    let before = numbers()?;
    assert_eq!(before.len(), all.len());
    let other = KeyShare::new(ShareWord::forever(percent(20)), percent(7));
    let more = key(MOST_KEYS);
    assert!(matches!(
        maps.set(&[(key(5), other), (more, other)]),
        Err(DatapathError::NoRoomForShare(MOST_KEYS))
    ));
    assert_eq!((maps.get(&key(5))?, maps.get(&more)?), (Some(other), None));
    maps.remove(&[key(7), key(5), more])?;
    maps.set(&[(more, other)])?;
    assert_eq!((maps.get(&key(5))?, maps.get(&more)?), (None, Some(other)));
    assert_eq!(maps.get(&key(8))?, Some(share));
    let after = numbers()?;
    assert_eq!(after.len(), all.len() - 1);
    // Each remaining key keeps its number.
    let moved = after.iter().filter(|(number, key)| before[number] != **key);
    assert_eq!(moved.map(|(_, key)| *key).collect::<Vec<_>>(), [more]);
    Ok(())
}

/// The oracle of the test: the meaning of shares, stated plainly.
#[derive(Default)]
struct Oracle {
    own: HashMap<u8, KeyShare>,
    /// The time when each bucket is full, in nanoseconds at the rate of the whole.
    full_at: HashMap<u8, u64>,
}

impl Oracle {
    fn share(&self, host: u8, now: u64) -> u64 {
        let word = |word: u64| (word & !0xff_ffff, word & 0xff_ffff);
        let share = match self.own.get(&host) {
            Some(own) => {
                let (until, share) = word(own.word.0);
                if now < until { share } else { own.after }
            }
            None => 0,
        };
        share.max(u64::from(minimum_share_of(NODES).number()))
    }

    fn passes(&mut self, host: u8, now: u64, interval: u64, burst: u64) -> bool {
        let share = u128::from(self.share(host, now));
        let cost = (u128::from(interval) * 10_000_000).div_ceil(share);
        let full_at = self.full_at.entry(host).or_default();
        let after = u128::from((*full_at).max(now)) + cost;
        let passes = after <= u128::from(now + interval * burst);
        if passes {
            *full_at = u64::try_from(after).expect("a time");
        }
        passes
    }
}

#[test]
fn both_engines_agree_with_the_meaning_whatever_shares_do() -> Result<()> {
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Packet(u8),
        Own(u8, u32, u32, u64),
        Take(u8),
    }
    let host = || 0..4_u8;
    let share = || prop_oneof![1..=Parts::WHOLE.number(), 1..600_000_u32];
    let ends = || 0..80 * MS;
    let step = prop_oneof![
        200 => host().prop_map(Step::Packet),
        2 => (host(), share(), share(), ends())
            .prop_map(|(host, share, after, ends)| Step::Own(host, share, after, ends)),
        1 => host().prop_map(Step::Take),
    ];
    let steps = prop::collection::vec((0..40_000_u64, step), 4_000);
    let steps = generate(&steps, &mut TestRunner::default());
    let interval = RATE.period_ns / RATE.count;
    let all_follow = |mode, store| {
        let limit = Limit {
            mode,
            ..shared_limit(IdFormat::IpAddress, Cost::Packets, RATE)
        };
        let mut engines = Engines::with(&policy([limit]), store)?;
        let (mut oracle, mut now, mut seen) = (Oracle::default(), 0, [0; 2]);
        let parts = |number| Parts::new(number).expect("a share");
        for (pause, step) in steps.iter().copied() {
            now += pause;
            match step {
                Step::Packet(host) => {
                    let passes = oracle.passes(host, START + now, interval, RATE.burst);
                    let frame = frame(&format!("192.0.2.{host}"), b"")?;
                    let verdict = engines.verdict(now, &frame);
                    if mode == Mode::Observe {
                        let meant = (WithinLimits, u64::from(!passes));
                        assert_eq!((verdict.reason, verdict.would_drop), meant);
                    } else {
                        let meant = if passes { WithinLimits } else { OverLimit };
                        assert_eq!(verdict.reason, meant);
                    }
                    seen[usize::from(passes)] += 1;
                }
                Step::Own(host, share, after, holds) => {
                    let own = KeyShare::new(until(parts(share), now + holds), parts(after));
                    oracle.own.insert(host, own);
                    engines.set_key_share(of_source(&format!("192.0.2.{host}"), 32)?, Some(own))?;
                }
                Step::Take(host) => {
                    oracle.own.remove(&host);
                    engines.set_key_share(of_source(&format!("192.0.2.{host}"), 32)?, None)?;
                }
            }
        }
        assert!(seen.iter().all(|seen| *seen > 200), "{seen:?}");
        // The last steps may have taken every share.
        assert_eq!(engines.key_shares().len(), oracle.own.len());
        assert!(!engines.take_wanting().is_empty());
        engines.assert_same_state();
        Ok(())
    };
    in_both_stores(|store| {
        all_follow(Mode::Enforce, store)?;
        all_follow(Mode::Observe, store)
    })
}
