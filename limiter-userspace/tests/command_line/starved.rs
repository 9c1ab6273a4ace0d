//! Nobody holds the daemon up: not who fills the metrics' port, not who stops reading its log or its
//! answers, and no part of it another.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, Map, MapData};
use testbed::{Crowd, Sizes, monotonic_ns};

use crate::{
    pinned::{METRICS, Pinned, metrics},
    sieve::{self, flood},
    succeed, wait_for,
};

/// How long a question may wait. A user expects a fifth of a second; a machine that compiles beside
/// the test does not keep to that.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the kernel is told of pressures, watched from outside.
struct Pressures(Array<MapData, [u64; 2]>);

impl Pressures {
    fn pinned(pinned: &Pinned) -> Result<Self> {
        let files = pinned.pins.files()?;
        let mut files = files.iter();
        let file = files.find(|file| file.ends_with("PRESSURE"));
        let data = MapData::from_pin(file.context("the pressures are pinned")?)?;
        Ok(Self(Map::from_map_data(data)?.try_into()?))
    }

    /// Watches until told to end; fails once a pressure that was not taken back holds no more.
    /// Returns how often there was one.
    fn watch(&self, goes_on: impl Fn() -> bool) -> Result<u64> {
        let mut seen = 0;
        while goes_on() {
            // In this order: it is not expired because it was read late.
            let now_ns = monotonic_ns();
            for word in self.0.iter() {
                let [above, until_ns] = word?;
                if above != 0 {
                    let late_ns = now_ns.saturating_sub(until_ns);
                    ensure!(late_ns == 0, "a pressure has lapsed for {late_ns} ns");
                    seen += 1;
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(seen)
    }
}

/// Does something while pressures are watched: none may lapse, and there has to be one.
fn without_a_lapse(pinned: &Pinned, act: impl FnOnce() -> Result<()>) -> Result<()> {
    let pressures = Pressures::pinned(pinned)?;
    let over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        let watch =
            scope.spawn(|| pressures.watch(|| !over.load(std::sync::atomic::Ordering::Relaxed)));
        let done = act();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        let seen = watch.join().ok().context("the watch panicked")??;
        ensure!(seen > 0, "there was no pressure");
        done
    })
}

/// How many descriptors the daemon has open.
fn descriptors(pinned: &Pinned) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{}/fd", pinned.limiter.id()))?.count())
}

/// Allows the daemon so many descriptors.
fn allow(pinned: &Pinned, descriptors: usize) -> Result<()> {
    let mut command = std::process::Command::new("prlimit");
    command.arg(format!("--pid={}", pinned.limiter.id()));
    command.arg(format!("--nofile={descriptors}:"));
    succeed(&mut command).map(drop)
}

#[test]
fn a_crowd_at_the_metrics_holds_nothing_up() -> Result<()> {
    const SIZES: Sizes = Sizes {
        idle: 1_000,
        slow: 200,
        busy: 50,
    };
    let pinned = Pinned::start(sieve::CONFIGURATION)?;
    allow(&pinned, 1_024)?;
    flood(&pinned, || {
        without_a_lapse(&pinned, || {
            let crowd = Crowd::gather(&pinned.pair.server, METRICS.into(), SIZES);
            // A server that does not keep up is to be seen by what comes next.
            let until = Instant::now() + PATIENCE;
            while crowd.arrived() < SIZES.idle + SIZES.slow && Instant::now() < until {
                thread::sleep(Duration::from_millis(20));
            }
            let until = Instant::now() + Duration::from_secs(5);
            let (mut longest, mut most) = (Duration::ZERO, 0);
            for number in 0.. {
                let begun = Instant::now();
                pinned.limiter.status()?;
                longest = longest.max(begun.elapsed());
                let address = format!("192.0.2.{}", number % 256);
                pinned.limiter.show(&["ban", &address])?;
                most = most.max(descriptors(&pinned)?);
                if Instant::now() > until {
                    break;
                }
            }
            println!(
                "{} arrived, {} answers to the busy; status took {longest:?} at most; {most} descriptors",
                crowd.arrived(),
                crowd.answers()
            );
            ensure!(longest < PATIENCE, "status took {longest:?}");
            ensure!(most < 512, "{most} descriptors are open");
            crowd.disperse()
        })
    })?;
    let log = pinned.limiter.log()?;
    ensure!(!log.contains("escriptor"), "{log}");
    ensure!(!log.contains("open files"), "{log}");
    // Once they have left, Prometheus is answered.
    wait_for(|| Ok(metrics(&pinned.pair.server).is_ok_and(|told| told.contains("# EOF"))))
}
