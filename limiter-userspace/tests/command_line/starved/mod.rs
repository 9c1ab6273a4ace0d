//! Tests for starvation. No client delays the daemon by filling the metrics' port or the control socket, or by not
//! reading its log or responses. No thread of the daemon delays another.

mod crowd;
mod feeds;
mod frozen;
mod log;
mod requests;
mod responses;
mod sockets;

use std::{
    collections::BTreeSet,
    fs,
    net::TcpStream,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, Map, MapData};
use testbed::monotonic_ns;

use crate::{
    pinned::{METRICS, Pinned},
    succeed,
};

/// Commands give up after this time. Users expect a response within a fifth of a second, but a machine that compiles
/// beside the test is slower.
const PATIENCE: Duration = Duration::from_secs(10);

/// A pressure may lapse for less than this: three test suites at once have kept all threads of a daemon from running
/// for so long. A real starvation lasts longer.
const STARVED: Duration = Duration::from_secs(1);

/// How many descriptors the daemon may still open: fewer than it serves connections at the metrics' port.
const FREE: usize = 32;

/// The pressures in the kernel, watched from outside.
struct Pressures(Array<MapData, [u64; 2]>);

impl Pressures {
    fn pinned(pinned: &Pinned) -> Result<Self> {
        let files = pinned.pins.files()?;
        let mut files = files.iter();
        let file = files.find(|file| file.ends_with("PRESSURE"));
        let data = MapData::from_pin(file.context("no pressures are pinned")?)?;
        Ok(Self(Map::from_map_data(data)?.try_into()?))
    }

    /// Watches while `goes_on`; fails if a pressure expires and stays unrenewed for [`STARVED`] or longer. Returns how
    /// often it saw a pressure.
    fn watch(&self, goes_on: impl Fn() -> bool) -> Result<u64> {
        let mut seen = 0;
        while goes_on() {
            // Take the time first: a late read must not make the pressure look expired.
            let now_ns = monotonic_ns();
            for word in self.0.iter() {
                let [above, until_ns] = word?;
                if above != 0 {
                    let late = Duration::from_nanos(now_ns.saturating_sub(until_ns));
                    ensure!(late < STARVED, "a pressure lapsed {late:?} ago");
                    seen += 1;
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(seen)
    }
}

/// Runs `act` while it watches the pressures: at least one must be seen, and none may lapse.
fn without_a_lapse(pinned: &Pinned, act: impl FnOnce() -> Result<()>) -> Result<()> {
    let pressures = Pressures::pinned(pinned)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| pressures.watch(|| !over.load(Ordering::Relaxed)));
        let done = act();
        over.store(true, Ordering::Relaxed);
        let seen = watch.join().ok().context("the watch panicked")??;
        ensure!(seen > 0, "there was no pressure");
        done
    })
}

fn descriptors(pinned: &Pinned) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{}/fd", pinned.limiter.id()))?.count())
}

fn allow(pinned: &Pinned, descriptors: usize) -> Result<()> {
    let mut command = Command::new("prlimit");
    command.arg(format!("--pid={}", pinned.limiter.id()));
    command.arg(format!("--nofile={descriptors}:"));
    succeed(&mut command).map(drop)
}

/// Takes every free descriptor from the daemon, until the connections are dropped.
fn take_descriptors(pinned: &Pinned) -> Result<Vec<TcpStream>> {
    let mut open = BTreeSet::new();
    for descriptor in fs::read_dir(format!("/proc/{}/fd", pinned.limiter.id()))? {
        let number = descriptor?.file_name();
        let number = number.to_str().context("a number")?;
        open.insert(number.parse::<usize>()?);
    }
    // Count free numbers, not numbers beyond the last open one: with a high inherited descriptor, the daemon could open
    // more than it serves connections.
    let mut free = (0..).filter(|number| !open.contains(number));
    allow(pinned, free.nth(FREE).context("a number")?)?;
    // Some connections wait in the backlog.
    let connections = FREE + 20;
    pinned.pair.server.enter(|| {
        let connect = |_| Ok(TcpStream::connect(METRICS)?);
        (0..connections).map(connect).collect()
    })
}

/// Fails unless the daemon answers a request for its status in time.
fn assert_responds(pinned: &Pinned) -> Result<()> {
    let begun = Instant::now();
    pinned.limiter.status()?;
    ensure!(
        begun.elapsed() < PATIENCE,
        "status took {:?}",
        begun.elapsed()
    );
    Ok(())
}
