//! A flood of forged sources, with clients in the midst of it.

use anyhow::Result;
use limiter_common::{limit::BUILT_IN, reason::Action};
use limiter_datapath::kernel::{Trial, possible_cpus};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Limit, Policy, Rate},
};
use testbed::Frame;

const SECOND: u64 = 1_000_000_000;

/// The length of the flood, by the program's clock.
const TIME: u64 = SECOND / 10;

/// A packet a microsecond, each from another source.
const FLOOD_INTERVAL: u64 = 1_000;

const RATE: Rate = Rate {
    burst: 50,
    count: 1_000,
    period_ns: SECOND,
};

/// The number of clients that keep to 80 % of the limit.
const GOOD: u8 = 10;
const GOOD_INTERVAL: u64 = SECOND / 800;

/// This client sends at five times its limit.
const GREEDY_INTERVAL: u64 = SECOND / 5_000;

/// A client that sends at a fixed interval.
struct Client {
    frame: Vec<u8>,
    next: u64,
    interval: u64,
    passed: u64,
    dropped: u64,
}

impl Client {
    fn new(host: u8, first: u64, interval: u64) -> Result<Self> {
        let source = [192, 0, 2, host].into();
        Ok(Self {
            frame: Frame::new(source, [198, 51, 100, 1].into()).udp(1, 2, b"x")?,
            next: first,
            interval,
            passed: 0,
            dropped: 0,
        })
    }

    /// Sends the packets due by `now`.
    fn send(&mut self, now: u64, trial: &mut Trial) -> Result<()> {
        while self.next <= now {
            let verdict = trial.judge(self.next, &self.frame)?;
            match verdict.reason.action(Action::Drop) {
                Action::Pass => self.passed += 1,
                Action::Drop => self.dropped += 1,
            }
            self.next += self.interval;
        }
        Ok(())
    }
}

/// No good client loses a packet, and the greedy one gets exactly its limit.
fn check(buckets: Buckets) -> Result<()> {
    let limit = Limit::of_built_in(&BUILT_IN[0], Some(RATE));
    let tables = CompiledPolicy::new(&Policy::from(vec![limit]), possible_cpus())?;
    let mut trial = Trial::new(&tables, buckets, Offenders::default())?;
    let start = 1_000 * SECOND;
    let mut good = (0..GOOD)
        .map(|host| Client::new(host, start + u64::from(host) * 111_111, GOOD_INTERVAL))
        .collect::<Result<Vec<_>>>()?;
    let mut greedy = Client::new(200, start, GREEDY_INTERVAL)?;

    let mut forged = Frame::new([10, 0, 0, 0].into(), [198, 51, 100, 1].into()).udp(1, 2, b"x")?;
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for step in 0..TIME / FLOOD_INTERVAL {
        let now = start + step * FLOOD_INTERVAL;
        for client in good.iter_mut().chain([&mut greedy]) {
            client.send(now, &mut trial)?;
        }
        // Xorshift (Marsaglia, 2003), into 10.0.0.0/8.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let [a, b, c, ..] = random.to_be_bytes();
        forged[27..30].copy_from_slice(&[a, b, c]);
        trial.judge(now, &forged)?;
    }

    for client in &good {
        assert_eq!(client.dropped, 0, "{buckets:?}: of {}", client.passed);
        assert!(client.passed > 60);
    }
    let most = RATE.burst + TIME * RATE.count / SECOND;
    assert!(
        greedy.passed <= most,
        "{buckets:?}: {} of {most}",
        greedy.passed
    );
    assert!(
        greedy.passed * 100 >= most * 99,
        "{} of {most}",
        greedy.passed
    );
    Ok(())
}

/// A thousand forged sources are in debt at any time, in a small table.
#[test]
fn a_small_table_forgets_nobody_who_is_limited() -> Result<()> {
    check(Buckets {
        store: Store::Table,
        capacity: 8_192,
        ..Buckets::default()
    })
}

/// The kernel's map evicts the least recently used sources, so it needs room for the whole flood.
#[test]
fn a_hash_map_with_room_for_the_flood() -> Result<()> {
    check(Buckets {
        store: Store::Hash,
        capacity: 1 << 20,
        ..Buckets::default()
    })
}
