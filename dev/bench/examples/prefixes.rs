//! Measures classification by large sets of prefixes on this machine: compiling, loading and
//! look-ups. Needs root.
//!
//! Native look-ups are timed in a loop over 65 536 sources drawn beforehand; each look-up waits for
//! the previous one. The best of 30 loops counts, because other processes use the machine's cache,
//! too. In the kernel, a test run has a single frame, so many frames get short runs each. They find
//! their part of the tables in the cache, and so show a look-up's instructions, not its cache
//! misses.

use std::{
    hint::black_box,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};

use anyhow::Result;
use comfy_table::{Table, presets};
use ipnet::IpNet;
use limiter_common::{address::Address, limit::BUILT_IN, policy::classify};
use limiter_datapath::kernel::{ClockSource, Instance, LogLevel, Settings, possible_cpus};
use limiter_policy::{
    config::{Buckets, Offenders},
    policy::{CompiledPolicy, Limit, Override, OverrideId, Policy, Rate},
};
use testbed::Frame;

const PREFIXES: usize = 100_000;
const PROBES: usize = 1 << 16;
const FRAMES: usize = 24;
const RUNS: u32 = 100_000;

/// SplitMix64: the same sets and sources in every run.
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    const fn word(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// Draws a number below `end`, which is far below 2^32.
    fn below(&mut self, end: usize) -> usize {
        self.word() as usize % end
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// Draws a prefix inside the prefix made of the first `outer` bits of `bits`.
    fn v6(&mut self, bits: u128, outer: u32, length: u8) -> IpNet {
        let inner = u128::MAX.checked_shr(outer).unwrap_or(0);
        let address = Ipv6Addr::from_bits(bits & !inner | self.wide() & inner);
        IpNet::new_assert(address.into(), length).trunc()
    }

    fn v4(&mut self, length: u8) -> IpNet {
        IpNet::new_assert(Ipv4Addr::from_bits(self.word()).into(), length).trunc()
    }
}

const GLOBAL: u128 = 0x2 << 124;
const ONE_16: u128 = 0x2a10 << 112;
const ONE_64: u128 = 0x2001_0db8_0001_0002 << 64;

fn sets() -> Vec<(&'static str, Vec<IpNet>)> {
    let mut random = Random(1);
    let mut set = |prefix: &dyn Fn(&mut Random, usize) -> IpNet| {
        (0..PREFIXES)
            .map(|number| prefix(&mut random, number))
            .collect()
    };
    vec![
        ("none", Vec::new()),
        ("IPv4 /24", set(&|random, _| random.v4(24))),
        (
            "IPv4 /8 to /32",
            set(&|random, number| random.v4([8, 16, 20, 22, 24, 24, 24, 28, 32, 32][number % 10])),
        ),
        (
            "(a) /48 in 2000::/3",
            set(&|random, _| random.v6(GLOBAL, 3, 48)),
        ),
        (
            "(b) /48 in one /16",
            set(&|random, _| random.v6(ONE_16, 16, 48)),
        ),
        (
            "(c) /128 in one /64",
            set(&|random, _| random.v6(ONE_64, 64, 128)),
        ),
        (
            "(d) mixed",
            set(&|random, number| match number % 5 {
                0 => random.v6(GLOBAL, 3, 48),
                1 => random.v6(ONE_16, 16, 48),
                2 => random.v6(ONE_64, 64, 128),
                3 => random.v6(GLOBAL, 3, 32),
                _ => random.v6(ONE_16, 16, 64),
            }),
        ),
    ]
}

fn policy(prefixes: &[IpNet]) -> Policy {
    let rate = |number: usize| Rate {
        burst: 1 + (number % 16) as u64,
        count: 1,
        period_ns: 1_000_000_000,
    };
    let mut prefixes = prefixes.to_vec();
    prefixes.sort_unstable();
    prefixes.dedup();
    let overrides = prefixes.iter().enumerate();
    Policy::from(vec![Limit {
        overrides: overrides
            .map(|(number, prefix)| Override {
                id: OverrideId::Prefix(*prefix),
                rate: rate(number),
                comment: None,
            })
            .collect(),
        ..Limit::of_built_in(&BUILT_IN[0], Some(rate(0)))
    }])
}

/// Draws sources anywhere in one family.
fn anywhere(count: usize, v4: bool) -> Vec<IpAddr> {
    let mut random = Random(2);
    (0..count)
        .map(|_| {
            if v4 {
                random.v4(32).addr()
            } else {
                random.v6(GLOBAL, 3, 128).addr()
            }
        })
        .collect()
}

/// Draws sources, each inside one of the prefixes.
fn inside(count: usize, prefixes: &[IpNet]) -> Vec<IpAddr> {
    let mut random = Random(3);
    (0..count)
        .map(|_| {
            let prefix = prefixes[random.below(prefixes.len())];
            match prefix {
                IpNet::V4(prefix) => {
                    let host = u32::MAX
                        .checked_shr(prefix.prefix_len().into())
                        .unwrap_or(0);
                    let bits = prefix.network().to_bits() | random.word() & host;
                    Ipv4Addr::from_bits(bits).into()
                }
                IpNet::V6(prefix) => {
                    let host = u128::MAX
                        .checked_shr(prefix.prefix_len().into())
                        .unwrap_or(0);
                    let bits = prefix.network().to_bits() | random.wide() & host;
                    Ipv6Addr::from_bits(bits).into()
                }
            }
        })
        .collect()
}

/// Returns the nanoseconds of a native look-up.
fn native(tables: &CompiledPolicy, sources: &[IpAddr]) -> f64 {
    let sources: Vec<Address> = sources.iter().map(|source| (*source).into()).collect();
    let mut best = f64::MAX;
    for _ in 0..30 {
        let start = Instant::now();
        // Always 0, but computed from the class, so that the next look-up must wait.
        let mut chain = 0;
        for source in &sources {
            let source = Address {
                high: source.high | chain,
                ..*source
            };
            let class = black_box(classify(tables, &source));
            chain = class.map_or(0, |class| class.listing.into());
        }
        best = best.min(nanoseconds(start.elapsed(), sources.len()));
    }
    best
}

/// Returns the mean of `count` runs.
fn nanoseconds(total: Duration, count: usize) -> f64 {
    let count = u32::try_from(count).map_or(f64::MAX, f64::from);
    total.as_secs_f64() * 1e9 / count
}

/// Returns the nanoseconds of the whole program, as the mean over frames from each source.
fn kernel(instance: &Instance, sources: &[IpAddr]) -> Result<f64> {
    let mut total = Duration::ZERO;
    for source in sources {
        let destination = match source {
            IpAddr::V4(_) => "198.51.100.1".parse()?,
            IpAddr::V6(_) => "2001:db8::2".parse()?,
        };
        let frame = Frame::new(*source, destination).udp(1, 2, &[0; 18])?;
        total += instance.hammer(&frame, RUNS)?;
    }
    Ok(nanoseconds(total / RUNS, sources.len()))
}

fn main() -> Result<()> {
    let settings = Settings::new(Buckets::default(), Offenders::default(), LogLevel::Off)?;
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "set",
        "compile",
        "load",
        "tables",
        "anywhere",
        "inside",
        "kernel: anywhere",
        "inside",
    ]);
    for (name, prefixes) in sets() {
        let policy = policy(&prefixes);
        let start = Instant::now();
        let tables = CompiledPolicy::new(&policy, possible_cpus())?;
        let compiled = start.elapsed();
        let start = Instant::now();
        let instance = Instance::load(&tables, 0, settings, ClockSource::Kernel)?;
        let loaded = start.elapsed();
        let v4 = prefixes
            .first()
            .is_none_or(|prefix| prefix.addr().is_ipv4());
        let sources = [
            anywhere(PROBES, v4),
            if prefixes.is_empty() {
                anywhere(PROBES, false)
            } else {
                inside(PROBES, &prefixes)
            },
        ];
        let ns = |ns: f64| format!("{ns:.1} ns");
        table.add_row([
            name.to_owned(),
            format!("{} ms", compiled.as_millis()),
            format!("{} ms", loaded.as_millis()),
            format!("{} KiB", tables.bytes() >> 10),
            ns(native(&tables, &sources[0])),
            ns(native(&tables, &sources[1])),
            ns(kernel(&instance, &sources[0][..FRAMES])?),
            ns(kernel(&instance, &sources[1][..FRAMES])?),
        ]);
    }
    println!("{}", table.trim_fmt());
    Ok(())
}
