//! Nodes admit what a limit says in common, wherever packets come.

use std::{
    num::NonZeroU32,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use testbed::{Frame, Limiter, Load, PinDirectory, Progress};

use super::{ARGUMENTS, Fleet, PACE, PATIENCE, configuration, status, store};
use crate::take_turn;

const RATE: u64 = 4_000;
/// As much as comes back in several seconds: tokens that come from nowhere are not hidden by those that come back.
const BURST: u64 = 20_000;

const LIMITS: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  All: {id: total, cost: packets, match: {protocol: udp, destination-port: 9}, scope: fleet, burst: 20000,
        count: 4000, period: 1s}";

/// Thrice as many packets a second as the fleet admits.
const FLOOD: NonZeroU32 = NonZeroU32::new(12_000).unwrap();

/// After this time no bucket has more left than what comes back.
const DRAINED: Duration = Duration::from_secs(4);

/// The packets that are admitted in common, as all nodes count it.
struct Watch<'f> {
    fleet: &'f Fleet,
    since: Instant,
}

impl Watch<'_> {
    /// Returns how many packets the nodes have admitted, in all.
    fn admitted(&self) -> Result<u64> {
        let nodes = self.fleet.nodes.iter();
        nodes.map(admitted).sum()
    }

    /// Checks that one bucket with the whole budget would have admitted all; returns how much that is.
    fn check(&self) -> Result<u64> {
        let admitted = self.admitted()?;
        let most = BURST + most_in(self.since.elapsed());
        println!("{admitted} were admitted, of at most {most}");
        ensure!(admitted <= most, "{admitted} were admitted, of {most}");
        Ok(admitted)
    }

    /// Waits; returns the part of the budget that was used meanwhile, in percent, by the rate.
    fn used_within(&self, time: Duration) -> Result<u64> {
        let (before, begun) = (self.check()?, Instant::now());
        thread::sleep(time);
        let after = self.check()?;
        Ok((after - before) * 100 / most_in(begun.elapsed()).max(1))
    }
}

/// Returns the tokens that come back in a time, by clocks that run a thousandth too fast.
fn most_in(time: Duration) -> u64 {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    RATE * ms * 1_001 / 1_000_000 + 1
}

fn admitted(node: &Limiter) -> Result<u64> {
    let limits = node.status()?["limits"].take();
    let passed = limits["All"]["passed_packets"].as_u64();
    passed.context("no such limit")
}

/// Returns a node's share, in thousandths.
pub(super) fn share(status: &Value) -> u64 {
    let share = status["shares"]["All"]["share_billionths"].as_u64();
    share.unwrap_or_default() / 1_000_000
}

/// Returns the rate of a node's share, in tokens a second.
fn rate(node: &Limiter) -> Result<u64> {
    let rate = status(node)?["shares"]["All"]["rate"].as_u64();
    rate.context("no share")
}

/// Waits until a node's share is as it should be; returns how long that took.
pub(super) fn wait_for_share(node: &Limiter, is_right: impl Fn(u64) -> bool) -> Result<Duration> {
    let begun = Instant::now();
    loop {
        let status = status(node)?;
        if is_right(share(&status)) {
            return Ok(begun.elapsed());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "the share is not as it should be: {status:#}\n{}",
            node.log()?
        );
        thread::sleep(PACE);
    }
}

/// Packets that come to a node until they are stopped.
pub(super) struct Flood {
    progress: Progress,
    thread: thread::JoinHandle<Result<()>>,
}

impl Flood {
    pub(super) fn of(fleet: &Fleet, number: usize) -> Result<Self> {
        let sender = fleet.store.sender(number)?;
        let progress = sender.progress();
        let source = store::address(number).parse()?;
        let frame = Frame::new(source, store::node_address(number).parse()?);
        let frame = frame.udp(1_000, 9, b"")?;
        let load = Load::steady(FLOOD, Duration::from_mins(2));
        let thread = thread::spawn(move || sender.send(load, &[frame]).map(drop));
        Ok(Self { progress, thread })
    }

    pub(super) fn stop(self) -> Result<()> {
        self.progress.stop();
        match self.thread.join() {
            Ok(sent) => sent,
            Err(_) => anyhow::bail!("the sender has panicked"),
        }
    }
}

/// One node's packets get nearly all, then another's; without a store each has its own half, and later they share
/// again. Never is more admitted than the limit says.
#[test]
fn a_budget_in_common_is_never_exceeded() -> Result<()> {
    let _turn = take_turn();
    let mut fleet = Fleet::with(&["a", "b"], LIMITS)?;
    // Banks open after two seconds.
    for node in &fleet.nodes {
        wait_for_share(node, |share| share >= 499)?;
    }
    let since = Instant::now();

    let flood = Flood::of(&fleet, 1)?;
    let taken = wait_for_share(&fleet.nodes[0], |share| share > 950)?;
    println!("the first node had nearly all after {taken:?}");
    // Within a second, on a machine that has nothing else to do.
    ensure!(taken < Duration::from_secs(3), "{taken:?}");
    wait(&fleet, since, DRAINED)?;
    let used = wait(&fleet, since, Duration::from_secs(4))?;
    println!("one node with all the demand used {used} %");
    ensure!(used >= 93, "{used} %");

    let other = Flood::of(&fleet, 2)?;
    let used = wait(&fleet, since, Duration::from_secs(4))?;
    println!("two nodes that want all used {used} %");
    flood.stop()?;
    let used = wait(&fleet, since, Duration::from_secs(10))?;
    println!("in the ten seconds after it moved, the other node used {used} %");
    ensure!(used >= 90, "{used} %");

    fleet.store.kill()?;
    let ended = wait_for_share(&fleet.nodes[1], |share| share <= 500)?;
    println!("what was lent ended {ended:?} after the store");
    ensure!(ended < Duration::from_secs(4), "{ended:?}");
    let used = wait(&fleet, since, Duration::from_secs(3))?;
    println!("without a store, one of two nodes used {used} %");
    ensure!((45..=51).contains(&used), "{used} %");
    fleet.store.run()?;
    let back = wait_for_share(&fleet.nodes[1], |share| share > 950)?;
    println!("{back:?} after the store was back, it had nearly all");
    ensure!(back < Duration::from_secs(5), "{back:?}");

    // A node that starts anew begins at its floor.
    fleet.nodes[1].kill()?;
    fleet.nodes[1].restart()?;
    let back = wait_for_share(&fleet.nodes[1], |share| share > 950)?;
    println!("{back:?} after a killed daemon was back, it had nearly all");
    other.stop()?;
    fleet.stop()
}

/// Daemons that stall, are killed and start anew while their programs go on, and a store that stalls, is lost and
/// begins empty: never is more admitted than the limit says.
#[test]
fn no_fault_lets_more_pass_than_the_budget() -> Result<()> {
    let _turn = take_turn();
    let mut fleet = Fleet::with(&["a", "b"], LIMITS)?;
    for node in &fleet.nodes {
        wait_for_share(node, |share| share >= 499)?;
    }
    // The first one's programs stay when its daemon is killed.
    let pins = PinDirectory::new()?;
    let argument = pins.argument();
    fleet.nodes[0].terminate()?;
    fleet.nodes[0].restart_with(&[&ARGUMENTS[..], &[&argument]].concat())?;
    wait_for_share(&fleet.nodes[0], |share| share >= 499)?;
    let since = Instant::now();
    let first = Flood::of(&fleet, 1)?;
    wait(&fleet, since, DRAINED)?;
    // It holds nearly all, which ends without it.
    fleet.nodes[0].signal(Signal::SIGSTOP)?;
    let second = Flood::of(&fleet, 2)?;
    thread::sleep(Duration::from_secs(4));
    fleet.nodes[0].signal(Signal::SIGCONT)?;
    wait(&fleet, since, Duration::from_secs(3))?;
    fleet.nodes[0].kill()?;
    thread::sleep(Duration::from_secs(4));
    fleet.nodes[0].restart()?;
    wait(&fleet, since, Duration::from_secs(3))?;
    fleet.nodes[0].kill()?;
    fleet.nodes[0].restart()?;
    wait(&fleet, since, Duration::from_secs(4))?;
    fleet.store.command(&["client", "pause", "4000", "all"])?;
    wait(&fleet, since, Duration::from_secs(6))?;
    first.stop()?;
    wait(&fleet, since, Duration::from_secs(2))?;
    fleet.store.kill()?;
    let first = Flood::of(&fleet, 1)?;
    wait(&fleet, since, Duration::from_secs(3))?;
    fleet.store.run()?;
    wait(&fleet, since, Duration::from_secs(5))?;
    second.stop()?;
    let used = wait(&fleet, since, Duration::from_secs(4))?;
    println!("after all that, one node used {used} %");
    ensure!(used >= 90, "{used} %");
    first.stop()?;
    fleet.stop()
}

fn wait(fleet: &Fleet, since: Instant, time: Duration) -> Result<u64> {
    Watch { fleet, since }.used_within(time)
}

/// A limit whose rate changes is another budget: each node begins at its floor, and then has its part.
#[test]
fn a_limit_that_changes_begins_at_its_floor() -> Result<()> {
    let _turn = take_turn();
    let all = ["a", "b"];
    let fleet = Fleet::with(&all, LIMITS)?;
    for node in &fleet.nodes {
        wait_for_share(node, |share| share >= 499)?;
    }
    let changed = LIMITS.replace("count: 4000", "count: 8000");
    let begun = Instant::now();
    for (number, (node, name)) in (1..).zip(fleet.nodes.iter().zip(all)) {
        node.configure(&configuration(&fleet.store, number, (name, &all), &changed))?;
        node.show(&["reload"])?;
        println!(
            "just after the reload of {name}, its rate was {}",
            rate(node)?
        );
    }
    // Half of the new rate: the floor before may be over by now.
    for node in &fleet.nodes {
        let begun = Instant::now();
        while !(3_990..=4_000).contains(&rate(node)?) {
            ensure!(begun.elapsed() < PATIENCE, "{:#}", status(node)?);
            thread::sleep(PACE);
        }
        ensure!(share(&status(node)?) >= 499);
    }
    println!("each had its half {:?} after the change", begun.elapsed());
    fleet.stop()
}
