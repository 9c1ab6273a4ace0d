//! The decision core compiled for this machine, over plain memory: shows the cost of a change,
//! without a kernel. `cargo bench -p bench`.

use std::hint::black_box;

use bench_common::{Layout, Source};
use criterion::{Criterion, Throughput};
use limiter_common::{
    answer::Exchange,
    decide::{Pipeline, Scratch},
    packet,
};
use limiter_datapath::kernel::possible_cpus;
use limiter_native::{BytesFrame, FixedClock, MemoryBuckets};
use limiter_policy::{config, policy::CompiledPolicy};
use testbed::Frame;

/// Enough that their buckets exceed the first-level cache but fit the second-level one: this
/// measures the core, not the memory.
const SOURCES: u64 = 1 << 12;

/// The time between two packets.
const INTERVAL_NS: u64 = 100;

const ONE: &str = "
limits:
  PacketsPerIPAddress: {burst: 1000, count: 1000, period: 1s}
";

const FOUR: &str = "
limits:
  PacketsPerIPAddress: {burst: 1000, count: 1000, period: 1s}
  BytesPerIPAddress: {burst: 1000000, count: 1000000, period: 1s}
  PacketsPerIPv4Range: {burst: 100000, count: 100000, period: 1s}
  BytesPerIPv4Range: {burst: 100000000, count: 100000000, period: 1s}
  PacketsPerIPv6Range: {burst: 100000, count: 100000, period: 1s}
  BytesPerIPv6Range: {burst: 100000000, count: 100000000, period: 1s}
";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    parsing(&mut criterion);
    deciding(&mut criterion);
    criterion.final_summary();
}

fn parsing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Elements(1));
    for (name, layout) in [("IPv4", Layout::V4), ("IPv6", Layout::V6Far)] {
        let frame = frame(layout, 0);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut facts = packet::Facts::NONE;
                let parsed = packet::parse(&BytesFrame(black_box(&frame)), &mut facts);
                black_box((parsed, facts))
            });
        });
    }
}

fn deciding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    group.throughput(Throughput::Elements(1));
    for (name, layout, limits) in [
        ("IPv4, 1 limit", Layout::V4, ONE),
        ("IPv4, 4 limits", Layout::V4, FOUR),
        ("IPv6, 1 limit", Layout::V6Far, ONE),
        ("IPv6, 4 limits", Layout::V6Far, FOUR),
    ] {
        let policy = policy(limits);
        let frames: Vec<_> = (0..SOURCES).map(|index| frame(layout, index)).collect();
        let buckets = MemoryBuckets::default();
        let mut now = 0;
        let mut next = frames.iter().cycle();
        let mut scratch = Scratch::default();
        let mut exchange = Exchange::EMPTY;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                now += INTERVAL_NS;
                let bytes = next.next().map_or(&[][..], Vec::as_slice);
                let pipeline = Pipeline {
                    clock: &FixedClock(now),
                    tables: &policy,
                    buckets: &buckets,
                    offenders: &(),
                    source_tables: &(),
                };
                black_box(pipeline.decide(&BytesFrame(bytes), &mut scratch, &mut exchange))
            });
        });
    }
}

fn policy(limits: &str) -> CompiledPolicy {
    let config = config::parse(limits, "bench").unwrap_or_else(|errors| panic!("{errors}"));
    CompiledPolicy::new(&config.policy, possible_cpus()).expect("these limits fit")
}

fn frame(layout: Layout, index: u64) -> Vec<u8> {
    let (source, destination) = match layout.source(index) {
        Source::V4(bits) => (bits.to_be_bytes().into(), [198, 18, 0, 1].into()),
        Source::V6(high, low) => (
            (u128::from(high) << 64 | u128::from(low))
                .to_be_bytes()
                .into(),
            [0xfd; 16].into(),
        ),
    };
    Frame::new(source, destination)
        .udp(9, 53, &[0; 2])
        .expect("the addresses are of one family")
}
