//! Nodes admit what a limit says in common, wherever packets come.

use std::{
    num::NonZeroU32,
    ops::RangeInclusive,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use testbed::{Frame, Limiter, Load, PinDirectory, Progress};

use super::{
    ARGUMENTS, Fleet, PACE, configuration, start, status,
    store::{self, Store},
};
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

/// After this time a bucket is full that nobody takes from: any share of the burst comes back in it.
const FULL: Duration = Duration::from_millis(BURST * 1_000 / RATE + 100);

/// How long the nodes may take to do what they do within seconds on a machine that has time for them. What
/// they may not do, they may not do however long it takes.
const IN_THE_END: Duration = Duration::from_mins(1);

/// How long shares are used while it is measured how much of the budget that is.
const MEASURED: Duration = Duration::from_secs(4);

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(300);

/// The packets that the nodes admit, in all: one bucket with the whole budget would have admitted them between
/// any two looks, and so over any time.
struct Watch {
    begun: Instant,
    /// By how much what was admitted was most below what had come back by a look.
    behind: i64,
    /// What nodes admitted that have left.
    gone: u64,
}

impl Watch {
    /// Begins when all nodes have their parts, and all buckets are full: so nothing that comes from nowhere is
    /// hidden by what somebody has not used.
    fn begin(fleet: &Fleet) -> Result<Self> {
        wait_for_parts(fleet)?;
        thread::sleep(FULL);
        let mut watch = Self {
            begun: Instant::now(),
            behind: i64::MAX,
            gone: 0,
        };
        watch.look(fleet)?;
        Ok(watch)
    }

    /// Checks that no more was admitted since any other look than the limit says; returns how much in all.
    fn look(&mut self, fleet: &Fleet) -> Result<u64> {
        let before = self.begun.elapsed();
        let admitted = self.gone + fleet.nodes.iter().map(admitted).sum::<Result<u64>>()?;
        let after = self.begun.elapsed();
        let count = i64::try_from(admitted)?;
        self.behind = self.behind.min(count - came_in(before)?);
        let taken = count - came_in(after)? - self.behind;
        // The time is rounded down.
        let most = i64::try_from(BURST)? + 1;
        println!("{after:?}: {admitted} were admitted, {taken} of {most} above the rate");
        ensure!(taken <= most, "{taken} more than the rate, of {most}");
        Ok(admitted)
    }

    /// Looks for a time; returns the part of the budget that was used meanwhile, in percent, by the rate.
    fn used_within(&mut self, fleet: &Fleet, time: Duration) -> Result<u64> {
        let (before, begun) = (self.look(fleet)?, Instant::now());
        loop {
            thread::sleep(LOOK);
            let (after, passed) = (self.look(fleet)?, begun.elapsed());
            if passed >= time {
                let came = u64::try_from(came_in(passed)?)?;
                return Ok((after - before) * 100 / came.max(1));
            }
        }
    }

    /// Looks until such a part of the budget is used, in percent: not at once while shares or packets are
    /// late, as the machine may have no time for them.
    fn wait_for_use(&mut self, fleet: &Fleet, right: RangeInclusive<u64>) -> Result<()> {
        let begun = Instant::now();
        loop {
            let used = self.used_within(fleet, MEASURED)?;
            if right.contains(&used) {
                println!("{used} % were used, {:?} after the change", begun.elapsed());
                return Ok(());
            }
            println!("{used} % were used, not {right:?}");
            if begun.elapsed() > IN_THE_END {
                for node in &fleet.nodes {
                    println!("{:#}\n{}", status(node)?, node.log()?);
                }
                bail!("{used} % were used, not {right:?}");
            }
        }
    }
}

/// Returns the tokens that come back in a time.
fn came_in(time: Duration) -> Result<i64> {
    let us = i64::try_from(time.as_micros())?;
    Ok(us * i64::try_from(RATE)? / 1_000_000)
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

/// Waits until each of two nodes has its part: banks open after two seconds.
fn wait_for_parts(fleet: &Fleet) -> Result<()> {
    for node in &fleet.nodes {
        wait_for_share(node, |share| share >= 499)?;
    }
    Ok(())
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
            begun.elapsed() < IN_THE_END,
            "the share is not as it should be: {status:#}\n{}",
            node.log()?
        );
        thread::sleep(PACE);
    }
}

/// Packets that come to a node until they are stopped.
pub(super) struct Flood {
    progress: Progress,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Flood {
    pub(super) fn of(fleet: &Fleet, number: usize) -> Result<Self> {
        let sender = fleet.store.sender(number)?;
        let progress = sender.progress();
        let source = store::address(number).parse()?;
        let frame = Frame::new(source, store::node_address(number).parse()?);
        let frame = frame.udp(1_000, 9, b"")?;
        let load = Load::steady(FLOOD, Duration::from_hours(1));
        let thread = thread::spawn(move || sender.send(load, &[frame]).map(drop));
        Ok(Self {
            progress,
            thread: Some(thread),
        })
    }

    pub(super) fn stop(mut self) -> Result<()> {
        self.progress.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(sent)) => sent,
            _ => bail!("the sender has panicked"),
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.progress.stop();
    }
}

/// One node's packets get nearly all, then another's; without a store each has its own half, and later they share
/// again. Never is more admitted than the limit says.
#[test]
fn a_budget_in_common_is_never_exceeded() -> Result<()> {
    let _turn = take_turn();
    let mut fleet = Fleet::with(&["a", "b"], LIMITS)?;
    let mut watch = Watch::begin(&fleet)?;

    let flood = Flood::of(&fleet, 1)?;
    let taken = wait_for_share(&fleet.nodes[0], |share| share > 950)?;
    println!("the first node had nearly all after {taken:?}");
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 93..=100)?;
    let other = Flood::of(&fleet, 2)?;
    watch.wait_for_use(&fleet, 93..=100)?;
    flood.stop()?;
    let taken = wait_for_share(&fleet.nodes[1], |share| share > 950)?;
    println!("the other node had nearly all after {taken:?}");
    watch.wait_for_use(&fleet, 93..=100)?;

    fleet.store.kill()?;
    let ended = wait_for_share(&fleet.nodes[1], |share| share <= 500)?;
    println!("what was lent ended {ended:?} after the store");
    watch.wait_for_use(&fleet, 45..=51)?;
    fleet.store.run()?;
    let back = wait_for_share(&fleet.nodes[1], |share| share > 950)?;
    println!("{back:?} after the store was back, it had nearly all");
    watch.wait_for_use(&fleet, 93..=100)?;

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
    wait_for_parts(&fleet)?;
    // The first one's programs stay when its daemon is killed.
    let pins = PinDirectory::new()?;
    let argument = pins.argument();
    fleet.nodes[0].terminate()?;
    fleet.nodes[0].restart_with(&[&ARGUMENTS[..], &[&argument]].concat())?;
    let mut watch = Watch::begin(&fleet)?;
    let mut wait = |fleet: &Fleet, seconds| {
        let used = watch.used_within(fleet, Duration::from_secs(seconds));
        used.map(drop)
    };
    let first = Flood::of(&fleet, 1)?;
    wait(&fleet, DRAINED.as_secs())?;
    // It holds nearly all, which ends without it.
    fleet.nodes[0].signal(Signal::SIGSTOP)?;
    let second = Flood::of(&fleet, 2)?;
    thread::sleep(Duration::from_secs(4));
    fleet.nodes[0].signal(Signal::SIGCONT)?;
    wait(&fleet, 3)?;
    fleet.nodes[0].kill()?;
    thread::sleep(Duration::from_secs(4));
    fleet.nodes[0].restart()?;
    wait(&fleet, 3)?;
    fleet.nodes[0].kill()?;
    fleet.nodes[0].restart()?;
    wait(&fleet, 4)?;
    fleet.store.command(&["client", "pause", "4000", "all"])?;
    wait(&fleet, 6)?;
    first.stop()?;
    wait(&fleet, 2)?;
    fleet.store.kill()?;
    let first = Flood::of(&fleet, 1)?;
    wait(&fleet, 3)?;
    fleet.store.run()?;
    wait(&fleet, 5)?;
    second.stop()?;
    // After all that, one node gets nearly all again.
    watch.wait_for_use(&fleet, 93..=100)?;
    first.stop()?;
    fleet.stop()
}

/// A limit whose rate changes is another budget: each node begins at its floor, and then has its part.
#[test]
fn a_limit_that_changes_begins_at_its_floor() -> Result<()> {
    let _turn = take_turn();
    let all = ["a", "b"];
    let fleet = Fleet::with(&all, LIMITS)?;
    wait_for_parts(&fleet)?;
    let changed = LIMITS.replace("count: 4000", "count: 8000");
    let begun = Instant::now();
    for (number, (node, name)) in (1..).zip(fleet.nodes.iter().zip(all)) {
        node.configure(&configuration(
            &fleet.store,
            number,
            (name, &all),
            &changed,
            "",
        ))?;
        node.show(&["reload"])?;
        let rate = rate(node)?;
        println!("just after the reload of {name}, its rate was {rate}");
        ensure!(rate <= 4_000, "{rate}");
    }
    // Half of the new rate: the floor before may be over by now.
    for node in &fleet.nodes {
        let begun = Instant::now();
        while !(3_990..=4_000).contains(&rate(node)?) {
            ensure!(begun.elapsed() < IN_THE_END, "{:#}", status(node)?);
            thread::sleep(PACE);
        }
        ensure!(share(&status(node)?) >= 499);
    }
    println!("each had its half {:?} after the change", begun.elapsed());
    fleet.stop()
}

/// A node comes and another leaves, while packets come to all: never is more admitted than the limit says.
#[test]
fn nodes_come_and_leave_within_the_budget() -> Result<()> {
    let _turn = take_turn();
    let mut fleet = Fleet::among(Store::start(3)?, &["a", "b"], LIMITS, "")?;
    wait_for_parts(&fleet)?;
    // So that programs go on without their daemons.
    let pins = [PinDirectory::new()?, PinDirectory::new()?];
    for (node, pins) in fleet.nodes.iter_mut().zip(&pins) {
        node.terminate()?;
        node.restart_with(&[&ARGUMENTS[..], &[&pins.argument()]].concat())?;
    }
    let mut watch = Watch::begin(&fleet)?;
    let floods = [Flood::of(&fleet, 1)?, Flood::of(&fleet, 2)?];
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 93..=100)?;

    let (two, three) = (["a", "b"], ["a", "b", "c"]);
    begin_with(&mut fleet, &mut watch, &two, ", next-nodes: [a, b, c]")?;
    // Two thirds, which the two may lend each other.
    watch.wait_for_use(&fleet, 62..=67)?;
    watch.used_within(&fleet, FULL)?;
    begin_with(&mut fleet, &mut watch, &three, "")?;
    let text = configuration(&fleet.store, 3, ("c", &three), LIMITS, "");
    fleet.nodes.push(start(&fleet.store, 3, &text)?);
    let third = Flood::of(&fleet, 3)?;
    watch.wait_for_use(&fleet, 93..=100)?;

    begin_with(&mut fleet, &mut watch, &three, ", next-nodes: [a, b]")?;
    third.stop()?;
    let leaving = fleet.nodes.pop().context("no third node")?;
    watch.gone = admitted(&leaving)?;
    ensure!(leaving.stop()?.success());
    watch.wait_for_use(&fleet, 62..=67)?;
    watch.used_within(&fleet, FULL)?;
    begin_with(&mut fleet, &mut watch, &two, "")?;
    watch.wait_for_use(&fleet, 93..=100)?;
    for flood in floods {
        flood.stop()?;
    }
    fleet.stop()
}

/// Has the first two nodes begin anew, one after the other, with other nodes in their configurations.
fn begin_with(fleet: &mut Fleet, watch: &mut Watch, nodes: &[&str], more: &str) -> Result<()> {
    for (number, name) in [(1, "a"), (2, "b")] {
        let text = configuration(&fleet.store, number, (name, nodes), LIMITS, more);
        let node = &mut fleet.nodes[number - 1];
        node.configure(&text)?;
        node.kill()?;
        node.restart()?;
        watch.used_within(fleet, DRAINED)?;
        if number == 1 {
            let shown = fleet.nodes[0].show(&["fleet", "status"])?;
            let others = "other `nodes` or `next-nodes` than this one's: b";
            ensure!(shown.contains(others), "{shown}");
        }
    }
    Ok(())
}
