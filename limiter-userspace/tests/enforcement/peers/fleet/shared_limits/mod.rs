//! Nodes together admit a shared limit's budget, wherever packets arrive.

mod cost;
mod failover;
mod key_change;
mod keys;
pub(super) mod nodes;
pub(super) mod watch;

use std::{
    num::NonZeroU32,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use serde_json::Value;
use testbed::{Frame, Limiter, Load, Progress};

use super::{
    Fleet, PACE, PATIENCE, status,
    store::{self, Store},
    wait_until,
};

/// Three times as many packets a second as the fleet admits.
const FLOOD: NonZeroU32 = NonZeroU32::new(3_000).unwrap();

/// After this time no flooded bucket has more than its refill.
pub(super) const DRAINED: Duration = Duration::from_secs(2);

/// Returns a node's share, in thousandths.
pub(super) fn share(status: &Value) -> u64 {
    share_of("All", status)
}

/// Returns a node's share of a limit; for a limit with many keys, the minimum share.
fn share_of(limit: &str, status: &Value) -> u64 {
    let share = status["shares"][limit]["share_billionths"].as_u64();
    share.unwrap_or_default() / 1_000_000
}

/// Waits until the store leases shares to each node.
pub(super) fn wait_for_leases(fleet: &Fleet) -> Result<()> {
    for node in &fleet.nodes {
        wait_until(node, |status| status["sharing_nodes"] == fleet.nodes.len())?;
    }
    Ok(())
}

/// Waits until a node's share is right; returns how long that took.
pub(super) fn wait_for_share(node: &Limiter, is_right: impl Fn(u64) -> bool) -> Result<Duration> {
    wait_for_share_of("All", node, is_right)
}

fn wait_for_share_of(
    limit: &str,
    node: &Limiter,
    is_right: impl Fn(u64) -> bool,
) -> Result<Duration> {
    let begun = Instant::now();
    loop {
        let status = status(node)?;
        if is_right(share_of(limit, &status)) {
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

/// A stream of packets to a node, until it is stopped.
pub(super) struct Flood {
    progress: Progress,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Flood {
    pub(super) fn of(fleet: &Fleet, number: usize) -> Result<Self> {
        Self::of_node(&fleet.store, number)
    }

    /// Sends packets of one source to a node, by its number.
    pub(super) fn of_node(store: &Store, number: usize) -> Result<Self> {
        let frame = Frame::new(
            store::address(number).parse()?,
            store::node_address(number).parse()?,
        );
        Self::from(store, number, vec![frame.udp(1_000, 9, b"")?])
    }

    /// Sends these frames in turn.
    fn with(fleet: &Fleet, number: usize, frames: Vec<Vec<u8>>) -> Result<Self> {
        Self::from(&fleet.store, number, frames)
    }

    fn from(store: &Store, number: usize, frames: Vec<Vec<u8>>) -> Result<Self> {
        let sender = store.sender(number)?;
        let progress = sender.progress();
        let load = Load::steady(FLOOD, Duration::from_hours(1));
        let thread = thread::spawn(move || sender.send(load, &frames).map(drop));
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
