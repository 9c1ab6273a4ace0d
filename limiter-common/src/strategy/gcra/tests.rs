//! Tables and properties of the arithmetic.

extern crate std;

use proptest::prelude::*;

use super::*;

/// Spends from a bucket in a known state.
fn spend(gcra: &Gcra, now: u64, tat: Option<u64>, cost: u64) -> Option<u64> {
    gcra.spend(now, cost).ok()?.apply(tat.unwrap_or(0)).ok()
}

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// Boulder's worked example, corrected: 20 per second, burst 20.
#[test]
fn worked_example() {
    let gcra = Gcra::new(20, 20, SECOND).unwrap();
    assert_eq!(gcra.emission_interval, 50 * MS);
    assert_eq!(gcra.burst_offset, SECOND);
    let start = 1_000 * SECOND;
    let mut tat = None;
    let mut spend_at = |at_ms: u64| {
        let now = start + at_ms * MS;
        let spent = spend(&gcra, now, tat, 1);
        if let Some(new) = spent {
            tat = Some(new);
        }
        (spent.is_some(), gcra.level(now, tat))
    };
    let level = |remaining, retry_ms, reset_ms| Level {
        remaining,
        retry_in_ns: retry_ms * MS,
        reset_in_ns: reset_ms * MS,
    };
    assert_eq!(spend_at(0), (true, level(19, 0, 50)));
    assert_eq!(spend_at(5), (true, level(18, 0, 95)));
    for request in 0..18 {
        assert!(spend_at(5 + request * 44 / 17).0, "request {}", request + 3);
    }
    assert_eq!(spend_at(49), (false, level(0, 1, 951)));
    assert_eq!(spend_at(50), (true, level(0, 50, 1_000)));
}

#[test]
fn emission_interval_is_truncated_as_boulder_does() {
    let gcra = Gcra::new(3, 3, SECOND).unwrap();
    assert_eq!(gcra.emission_interval, 333_333_333);
    assert_eq!(gcra.burst_offset, 999_999_999);
}

#[test]
fn a_missing_bucket_and_one_in_credit_are_full() {
    let gcra = Gcra::new(5, 1, SECOND).unwrap();
    let full = Level {
        remaining: 5,
        retry_in_ns: 0,
        reset_in_ns: 0,
    };
    assert_eq!(gcra.level(7 * SECOND, None), full);
    assert_eq!(gcra.level(7 * SECOND, Some(6 * SECOND)), full);
    assert_eq!(spend(&gcra, 7 * SECOND, Some(SECOND), 1), Some(8 * SECOND));
}

#[test]
fn refunds_never_overfill() {
    let gcra = Gcra::new(5, 1, SECOND).unwrap();
    let now = 100 * SECOND;
    let check = |tat: Option<u64>, cost, expected: u64| {
        let spent = gcra.spend(now, cost).unwrap();
        assert_eq!(spent.undo(tat.unwrap_or(0)), expected, "{tat:?} {cost}");
    };
    check(None, 1, now);
    check(Some(now), 1, now);
    check(Some(now - SECOND), 1, now);
    check(Some(now + 3 * SECOND), 1, now + 2 * SECOND);
    check(Some(now + 3 * SECOND), 5, now);
}

#[test]
fn more_than_a_full_bucket_never_passes() {
    let gcra = Gcra::new(1514, 1_000_000, SECOND).unwrap();
    assert_eq!(gcra.spend(SECOND, 1515), Err(LargerThanBurst));
    assert!(spend(&gcra, SECOND, None, 1514).is_some());
}

#[test]
fn rates_that_no_bucket_can_count_are_refused() {
    let check = |burst, count, period, accepted| {
        assert_eq!(
            Gcra::new(burst, count, period).is_some(),
            accepted,
            "{burst} {count} {period}"
        );
    };
    check(0, 1, 1, false);
    check(1, 0, 1, false);
    check(1, 1, 0, false);
    check(1, 64, 1, true);
    check(1, 65, 1, false);
    // 400 Gbit/s in bytes.
    check(10_000_000, 50_000_000_000, SECOND, true);
    // One in 30 days, with the largest burst that fits 2^62 ns.
    check(1_779, 1, 30 * 86_400 * SECOND, true);
    check(1_780, 1, 30 * 86_400 * SECOND, false);
    check(u64::MAX, u64::MAX, u64::MAX, false);
    // The ticks do not fit 64 bits.
    check(1, 1 << 63, (1 << 63) + 1, false);
}

proptest! {
    /// The invariant, against exact rational arithmetic, for any configurable rate and any sequence
    /// of times (the clock also steps back by microseconds) and costs: over every interval,
    /// admitted ≤ burst + interval / emission interval.
    #[test]
    fn never_admits_more_than_burst_and_refill(
        count in 1u64..60_000_000_000,
        period_s in 1u64..100,
        burst in 1u64..100_000,
        uptime in 0u64..10 * 365 * 86_400 * SECOND,
        packets in prop::collection::vec((0u64..2_000_000, 1u64..3000, 0u64..5_000), 1..60),
    ) {
        let period = period_s * SECOND;
        let gcra = Gcra::new(burst, count, period);
        prop_assume!(gcra.is_some());
        let gcra = gcra.unwrap();
        // Compares admitted tokens with the effective rate: Boulder's truncated interval where it
        // is used, else the exact configured interval.
        let (per, ticks) = if gcra.ticks_per_ns == Ratio::ONE {
            (gcra.emission_interval, 1)
        } else {
            (period, count)
        };
        let mut now = uptime;
        let mut tat = None;
        let mut admitted: std::vec::Vec<(u64, u64)> = std::vec::Vec::new();
        for (step, cost, back) in packets {
            now += step;
            let seen = now - back.min(now);
            if let Some(new) = spend(&gcra, gcra.ticks(seen), tat, cost) {
                tat = Some(new);
                admitted.push((seen, cost));
            }
        }
        for from in 0..admitted.len() {
            let first = admitted[from..].iter().map(|(at, _)| *at).min().unwrap();
            let mut total = 0u128;
            for (at, cost) in &admitted[from..] {
                total += u128::from(*cost);
                let last = admitted[from..].iter().map(|(at, _)| *at).max().unwrap().max(*at);
                // One nanosecond more: the times themselves are truncated to it.
                let refill = u128::from(last - first + 1) * u128::from(ticks);
                prop_assert!(
                    total.saturating_sub(burst.into()) * u128::from(per) <= refill,
                    "{} admitted in {} ns", total, last - first
                );
            }
        }
    }

    /// Packets that must leave a reserve, against exact rational arithmetic: over every interval
    /// that ends with such a packet, all admitted tokens ≤ burst − reserve + interval / emission
    /// interval.
    #[test]
    fn a_reserve_lowers_the_bound(
        count in 1u64..60_000_000_000,
        period_s in 1u64..100,
        (burst, kept) in (1u64..100_000).prop_flat_map(|burst| (Just(burst), 0..=burst)),
        uptime in 0u64..10 * 365 * 86_400 * SECOND,
        packets in prop::collection::vec((0u64..2_000_000, 1u64..3000, any::<bool>()), 1..60),
    ) {
        let period = period_s * SECOND;
        let gcra = Gcra::new(burst, count, period);
        prop_assume!(gcra.is_some());
        let gcra = gcra.unwrap();
        let (per, ticks) = if gcra.ticks_per_ns == Ratio::ONE {
            (gcra.emission_interval, 1)
        } else {
            (period, count)
        };
        let mut now = uptime;
        let mut tat = 0;
        let mut admitted: std::vec::Vec<(u64, u64)> = std::vec::Vec::new();
        for (step, cost, leaves) in packets {
            now += step;
            let reserve = if leaves { kept } else { 0 };
            let Ok(spend) = gcra.spend(gcra.ticks(now), cost) else {
                continue;
            };
            let Ok(new) = spend.leaving(reserve * gcra.emission_interval).apply(tat) else {
                continue;
            };
            tat = new;
            admitted.push((now, cost));
            for from in 0..admitted.len() {
                let (first, _) = admitted[from];
                let total: u128 = admitted[from..].iter().map(|(_, cost)| u128::from(*cost)).sum();
                // One nanosecond more: the times themselves are truncated to it.
                let refill = u128::from(now - first + 1) * u128::from(ticks);
                prop_assert!(
                    total.saturating_sub(u128::from(burst - reserve)) * u128::from(per) <= refill,
                    "{} admitted in {} ns, {} reserved", total, now - first, reserve
                );
            }
        }
    }

    /// For sources that need not leave it, a reserve is as good as a bucket of its size: all
    /// packets that such a bucket admits pass, for any traffic of other sources.
    #[test]
    fn a_reserve_is_a_bucket_for_those_it_is_for(
        count in 1u64..60_000_000_000,
        period_s in 1u64..100,
        (burst, kept) in (1u64..100_000).prop_flat_map(|burst| (Just(burst), 1..=burst)),
        uptime in 0u64..10 * 365 * 86_400 * SECOND,
        packets in prop::collection::vec((0u64..2_000_000, 1u64..3000, any::<bool>()), 1..60),
    ) {
        let period = period_s * SECOND;
        let gcra = Gcra::new(burst, count, period);
        prop_assume!(gcra.is_some());
        let gcra = gcra.unwrap();
        let promised = Gcra::new(kept, count, period).unwrap();
        let (mut now, mut tat, mut own) = (uptime, 0, 0);
        for (step, cost, leaves) in packets {
            now += step;
            let ticks = gcra.ticks(now);
            let Ok(spend) = gcra.spend(ticks, cost) else {
                continue;
            };
            if leaves {
                if let Ok(new) = spend.leaving(promised.burst_offset).apply(tat) {
                    tat = new;
                }
            } else if let Some(new) = self::spend(&promised, ticks, Some(own), cost) {
                own = new;
                let passed = spend.apply(tat);
                prop_assert!(passed.is_ok(), "{:?}", passed);
                tat = passed.unwrap();
            }
        }
    }

    /// A reserve prolongs a packet's wait by exactly the reserve.
    #[test]
    fn a_reserve_prolongs_the_wait_by_itself(
        (burst, kept) in (1u64..100_000).prop_flat_map(|burst| (Just(burst), 0..=burst)),
        cost in 1u64..3000, debt in 0u64..200_000 * SECOND, now in SECOND..1 << 57,
    ) {
        let gcra = Gcra::new(burst, 1, SECOND).unwrap();
        let tat = now + debt;
        prop_assume!(cost <= burst);
        let spend = gcra.spend(now, cost).unwrap();
        let reserve = kept * SECOND;
        let (plain, leaving) = (spend.apply(tat), spend.leaving(reserve).apply(tat));
        match (plain, leaving) {
            (Ok(plain), Ok(leaving)) => {
                prop_assert_eq!(plain, leaving);
                prop_assert!(gcra.level(now, Some(leaving)).remaining >= kept);
            }
            (Ok(_), Err(Wait(longer))) => prop_assert!(longer <= reserve),
            (Err(Wait(wait)), Err(Wait(longer))) => prop_assert_eq!(longer, wait + reserve),
            (Err(_), Ok(_)) => prop_assert!(false, "a reserve lets nothing pass"),
        }
    }

    /// A denied packet passes after the reported wait, and not a nanosecond earlier.
    #[test]
    fn retry_in_is_exact(
        count in 1u64..60_000_000_000, burst in 1u64..1_000_000, now in SECOND..1 << 57,
    ) {
        let gcra = Gcra::new(burst, count, SECOND);
        prop_assume!(gcra.is_some());
        let gcra = gcra.unwrap();
        let empty = spend(&gcra, gcra.ticks(now), None, burst);
        let level = gcra.level(gcra.ticks(now), empty);
        prop_assert_eq!(level.remaining, 0);
        let passes = |at: u64| spend(&gcra, gcra.ticks(at), empty, 1).is_some();
        prop_assert!(passes(now + level.retry_in_ns + 1));
        prop_assert!(level.retry_in_ns < 2 || !passes(now + level.retry_in_ns - 2));
    }

    /// With any state and any time, the arithmetic neither panics nor admits too much.
    #[test]
    fn any_state_is_safe(now: u64, tat: Option<u64>, cost: u64) {
        let gcra = Gcra::new(10, 1, 30 * 86_400 * SECOND).unwrap();
        if let Ok(spend) = gcra.spend(now, cost) {
            if let Ok(new) = spend.apply(tat.unwrap_or(0)) {
                prop_assert!(new <= now.saturating_add(gcra.burst_offset));
                prop_assert!(new >= now);
            }
            prop_assert!(spend.undo(tat.unwrap_or(0)) >= now);
        }
        let _ = gcra.level(now, tat);
    }
}

proptest! {
    #[test]
    fn increments_are_exact_up_to_their_bound(interval in 1..=MAX_BURST_OFFSET, cost in 0u64..1 << 32) {
        let exact = u128::from(interval) * u128::from(cost);
        // A cost of one token is never above it.
        let bound = u128::from(MAX_BURST_OFFSET);
        prop_assert_eq!(u128::from(bounded_increment(interval, cost)), exact.min(bound));
    }

    /// For any number of tries, at most the largest cost and the interval's refill is spent.
    #[test]
    fn what_is_owed_holds_the_rate(
        burst in 1u64..20,
        tries in prop::collection::vec((0..3 * SECOND, 1u64..40), 1..200),
    ) {
        let gcra = Gcra::new(burst, 1, SECOND).unwrap();
        let (mut now, mut tat, mut spent) = (SECOND, 0, 0);
        let largest = tries.iter().map(|(_, more)| burst + more).max().unwrap();
        for (pause, more) in tries {
            now += pause;
            let cost = burst + more;
            if let Ok(after) = gcra.spend_owing(now, cost).apply(tat) {
                // The bucket was full.
                prop_assert!(tat <= now);
                prop_assert_eq!(after, now + cost * SECOND);
                (tat, spent) = (after, spent + cost);
            }
            prop_assert!(spent <= largest + (now - SECOND) / SECOND);
        }
        prop_assert!(spent > 0);
    }
}
