//! The kernel's program counts connections by orders: within the promised memory, and each connection
//! once, even if CPUs act on it at the same moment.

use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
};

use anyhow::{Result, anyhow};
use limiter_common::{
    address::Address,
    connection::{ConnectionOrder, CountId, Ends},
    limit::LimitId,
    packet::NameMatch,
};
use limiter_datapath::kernel::{Trial, possible_cpus};
use limiter_policy::{
    config::{self, Buckets, Offenders},
    policy::CompiledPolicy,
};

const EACH: &str = "Each: {id: ipAddress, cost: connections, limit: 50}";
const ALL: &str = "All: {id: total, cost: connections, limit: 1000000}";

fn compiled(limits: &str) -> Result<CompiledPolicy> {
    let text = format!("limits: {{{limits}}}");
    let config = config::parse(&text, "test").map_err(|errors| anyhow!("{errors}"))?;
    Ok(CompiledPolicy::new(&config.policy, possible_cpus())?)
}

fn trial(policy: &CompiledPolicy) -> Result<Trial> {
    let buckets = Buckets::default();
    let offenders = Offenders::default();
    Ok(Trial::with_same_secret(policy, buckets, offenders)?)
}

/// The ends of a connection of the client with that number.
fn ends(client: u32) -> Ends {
    let peer = Address::v4((0x0b00_0000 + client).to_be_bytes());
    Ends::new(&peer, 4321, &Address::v4([198, 51, 100, 1]), 443)
}

/// The count id under which the limit for each address counts the connections of that client.
fn count_id(policy: &CompiledPolicy, client: u32) -> CountId {
    let ends = ends(client);
    let (hash_key, facts) = (&policy.features.hash_key, ends.facts());
    let each = policy.limits.len() - 1;
    CountId::of_packet(
        hash_key,
        &policy.limits[each],
        &facts,
        &0,
        &NameMatch::NOTHING,
        0,
    )
}

fn open(trial: &Trial, count_id: CountId) -> Result<u64> {
    Ok(trial.source_maps().connections().open(count_id)?)
}

/// Connections from as many addresses fit in 64 MiB, even if a second limit counts them. The unit tests
/// of the same tables try a million.
#[test]
fn connections_of_many_addresses_are_counted() -> Result<()> {
    const COUNT: u32 = 100_000;
    const MOST: u64 = 64 << 20;
    let policy = compiled(&format!("{EACH}, {ALL}"))?;
    let trial = trial(&policy)?;
    let maps = trial.source_maps().connections();
    trial.recount((1..=COUNT).map(|client| ConnectionOrder::open(client.into(), ends(client))))?;
    assert_eq!(maps.uncounted()?, 0);
    assert!(maps.counted().into_iter().eq(1..=u64::from(COUNT)));
    assert_eq!(
        maps.open_by_limit()[..3],
        [u64::from(COUNT), u64::from(COUNT), 0]
    );
    for client in (1..=COUNT).step_by(999) {
        assert_eq!(open(&trial, count_id(&policy, client))?, 1, "{client}");
    }
    let total = CountId::of_total(&policy.features.hash_key, LimitId(policy.limits[0].id));
    assert_eq!(open(&trial, total)?, u64::from(COUNT));
    let memory = maps.memory()?;
    assert!(memory <= MOST, "{memory} bytes");
    trial.recount((1..=COUNT).map(|client| ConnectionOrder::closed(client.into())))?;
    assert!(maps.counted().is_empty());
    assert_eq!(open(&trial, total)?, 0);
    Ok(())
}

/// Two CPUs count one connection at the same moment, each for another key. Then one closes it while the
/// other counts it anew. It is counted once, and in the end not at all.
#[test]
fn cpus_count_each_connection_once() -> Result<()> {
    const COUNT: u64 = 1_000;
    let policy = compiled(EACH)?;
    let trial = trial(&policy)?;
    let opened = |cookie, cpu| ConnectionOrder::open(cookie, ends(cpu));
    at_once(&trial, COUNT, opened)?;
    assert_eq!(counts(&trial, &policy)?, (COUNT, COUNT));
    at_once(&trial, COUNT, |cookie, cpu| match cpu {
        0 => ConnectionOrder::closed(cookie),
        _ => opened(cookie, cpu),
    })?;
    let (recorded, counted) = counts(&trial, &policy)?;
    assert_eq!(recorded, counted);
    at_once(&trial, COUNT, |cookie, _| ConnectionOrder::closed(cookie))?;
    assert_eq!(counts(&trial, &policy)?, (0, 0));
    assert_eq!(trial.source_maps().connections().uncounted()?, 0);
    Ok(())
}

const CPUS: u32 = 2;

/// Gives orders on each connection from two threads, which wait for each other before each order.
fn at_once(
    trial: &Trial,
    count: u64,
    order: impl Fn(u64, u32) -> ConnectionOrder + Sync,
) -> Result<()> {
    let arrived = AtomicU64::new(0);
    let give = |cpu| {
        trial.recount((1..=count).map(|cookie| {
            arrived.fetch_add(1, SeqCst);
            while arrived.load(SeqCst) < cookie * u64::from(CPUS) {
                thread::yield_now();
            }
            order(cookie, cpu)
        }))
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| give(1));
        give(0)?;
        other.join().expect("the other thread does not panic")
    })?;
    Ok(())
}

/// The number of recorded connections, and of counted connections for both keys.
fn counts(trial: &Trial, policy: &CompiledPolicy) -> Result<(u64, u64)> {
    let recorded = trial.source_maps().connections().counted().len();
    let open = (0..CPUS).map(|client| open(trial, count_id(policy, client)));
    Ok((recorded as u64, open.sum::<Result<u64>>()?))
}
