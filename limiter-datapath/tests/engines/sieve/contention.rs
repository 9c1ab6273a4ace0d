//! Two CPUs at one sieve, as fast as they can.

use std::thread;

use anyhow::Result;
use limiter_common::{
    limit::LimitId,
    reason::Reason::{self, Iprep, IprepPerma, OverLimit},
    sieve::{Geometry, ListedSource, Pressure, pressure_of_limit},
};
use limiter_datapath::kernel::{ClockSource, Instance, LogLevel, Settings, possible_cpus};
use limiter_policy::{
    config::{Buckets, Offenders},
    policy::{CompiledPolicy, PermaBlock, Sieve, SieveSizes},
};

use super::{from, policy, sieve, total};

/// Both use the same addresses. No address is in two lists, no list exceeds its capacity, and each
/// arrival is scored or counted as contended.
#[test]
fn two_cpus_leave_a_sieve_behind() -> Result<()> {
    const TIMES: u32 = 2_000;
    const ROUNDS: u32 = 200;
    for shard_bits in [0, 1] {
        let aging = Sieve {
            max_age_ns: 1_000_000,
            perma_block: PermaBlock {
                limit: 1_500,
                threshold: 1,
                max_age_ns: 1_000_000,
            },
            ..sieve("main", 3, 5)
        };
        let mut tables =
            CompiledPolicy::new(&policy([total(20, "main")], [aging]), possible_cpus())?;
        tables.sieves[0].geometry = Geometry {
            shard_bits,
            ..tables.sieves[0].geometry
        };
        let mut settings = Settings::new(Buckets::default(), Offenders::default(), LogLevel::Off)?;
        settings.sieves = SieveSizes::of(&tables.sieves);
        let mut instance = Instance::load(&tables, 0, settings, ClockSource::Kernel)?;
        let maps = instance.take_maps(settings)?;
        let source_maps = instance.take_source_maps(settings)?;
        let index = pressure_of_limit(LimitId(20));
        let always = Pressure::new(2, u64::MAX);
        source_maps
            .sieves()
            .pressures()
            .set_pressure(index, always)?;

        let instance = &instance;
        let hammer = |seed: u32| {
            (0..ROUNDS).try_for_each(|round| {
                let source = (round.wrapping_mul(seed)) % 100;
                instance.hammer(&from(source), TIMES).map(drop)
            })
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| hammer(7));
            hammer(11)?;
            other.join().expect("the other thread does not panic")
        })?;

        let sieve = &tables.sieves[0];
        let snapshot = source_maps.sieves().memory().snapshot(sieve);
        let mut listed = Vec::<&ListedSource>::new();
        for shard in &snapshot.shards {
            assert!(shard.is_exact);
            for (list, entries) in (0..).zip(&shard.lists) {
                assert!(entries.len() <= sieve.geometry.capacity(list) as usize);
                listed.extend(entries);
            }
        }
        let mut keys: Vec<_> = listed
            .iter()
            .map(|one| (one.key.high, one.key.low))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), listed.len(), "an address is there twice");
        let used = source_maps.sieves().memory().shards.iter();
        let used: usize = used.map(|shard| shard.used() as usize).sum();
        assert!(used >= listed.len());

        let traffic = source_maps.sieves().traffic(index)?;
        let arrived = u64::from(2 * ROUNDS * TIMES);
        println!("{} shards: {traffic:?}", sieve.geometry.shards());
        assert_eq!(traffic.arrived.packets, arrived);
        assert_eq!(traffic.scored + traffic.contended, arrived);
        let counts: u64 = listed.iter().map(|one| u64::from(one.count)).sum();
        assert!(counts <= traffic.scored);
        let turns = source_maps.sieves().memory().shards.iter();
        let turns: u64 = turns.map(|shard| shard.sequence.get() / 2).sum();
        assert_eq!(
            turns, traffic.scored,
            "each holder of a shard must have counted"
        );
        let dropped = maps.limit_traffic(LimitId(20))?.dropped.packets;
        let by_sieve = traffic.iprep.packets + traffic.iprep_perma.packets;
        let reason = |reason: Reason| anyhow::Ok(maps.reason_traffic(0, reason)?.packets);
        assert_eq!(by_sieve, reason(Iprep)? + reason(IprepPerma)?);
        assert_eq!(
            dropped,
            by_sieve + reason(OverLimit)? + reason(Reason::Contended)?
        );
    }
    Ok(())
}
