//! Compares a list of the kernel's connections with the counted ones: counts the open ones and takes off the closed
//! ones.

use std::{collections::HashSet, time::Duration};

use limiter_common::connection::{ConnectionOrder, Ends};
use limiter_datapath::kernel::{DatapathError, monotonic_now};
use limiter_host::netlink::DumpError;
use thiserror::Error;
use tokio::task::yield_now;

use crate::shared_datapath::SharedDatapath;

/// The pause before the next poll is at least this many times the CPU time of the last one.
pub(super) const CPU_DIVISOR: u32 = 20;

/// How long the kernel may take to list its connections.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Orders carried out in one batch, after which other tasks have their turn.
pub(super) const AT_ONCE: usize = 512;

/// Why the connections were not counted.
#[derive(Debug, Error)]
pub(super) enum CountError {
    #[error("the kernel does not list its connections: {0}")]
    Kernel(#[from] DumpError),
    #[error("the kernel has not listed its connections within {PATIENCE:?}")]
    Late,
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// The state between polls.
#[derive(Default)]
pub(super) struct ScanState {
    /// Cookies of open connections that need nothing more: the policy counts them or ignores them.
    pub(super) settled: HashSet<u64>,
    /// Cookies of connections first seen in the last poll, if events report each opening.
    seen: HashSet<u64>,
    /// Cookies of counted connections missing from the last poll. They are taken off if the next poll misses them
    /// too: the kernel may skip a connection if others close while it lists them.
    missed: HashSet<u64>,
    /// False until the first poll is over: the connections that it finds are not new.
    has_polled: bool,
}

impl ScanState {
    /// Charges the handshakes of connections opened since the last poll.
    pub(super) async fn charge(
        &self,
        datapath: &SharedDatapath,
        generation: u64,
        open: &[(u64, Ends)],
    ) -> Result<(), CountError> {
        let now_ns = monotonic_now();
        let is_new = |(cookie, ends): &&(u64, Ends)| {
            self.has_polled && !self.settled.contains(cookie) && !ends.are_both_own()
        };
        let new = open.iter().filter(is_new);
        let new = new.map(|(_, ends)| ConnectionOrder::completed(*ends, now_ns));
        carry_out(datapath, generation, &new.collect::<Vec<_>>()).await
    }

    /// Counts open connections not counted yet, and takes off closed ones: connections `counted` before the listing
    /// and missing from `open`, twice.
    ///
    /// `are_reported`: events report each opening and closing, so a connection that opened between two polls is
    /// already counted and may be closed by now. Counting it again would take a slot for two polls, so it is
    /// counted only if the next poll finds it, too.
    pub(super) async fn settle(
        &mut self,
        datapath: &SharedDatapath,
        generation: u64,
        counted: Vec<u64>,
        open: &[(u64, Ends)],
        are_reported: bool,
    ) -> Result<(), CountError> {
        let found: HashSet<u64> = open.iter().map(|(cookie, _)| *cookie).collect();
        let is_settled = |cookie: &u64| self.settled.contains(cookie);
        let may_be_closed =
            |cookie: &u64| are_reported && self.has_polled && !self.seen.contains(cookie);
        let (seen, settled): (HashSet<u64>, HashSet<u64>) =
            (found.iter()).partition(|cookie| !is_settled(cookie) && may_be_closed(cookie));
        let new = (open.iter()).filter(|(cookie, _)| !is_settled(cookie) && !seen.contains(cookie));
        let new = new.map(|(cookie, ends)| ConnectionOrder::open(*cookie, *ends));
        let missing = counted.into_iter();
        let missing = missing.filter(|cookie| !found.contains(cookie));
        let missing: HashSet<u64> = missing.collect();
        let closed = missing.intersection(&self.missed);
        let closed = closed.map(|cookie| ConnectionOrder::closed(*cookie));
        let orders: Vec<_> = new.chain(closed).collect();
        carry_out(datapath, generation, &orders).await?;
        (self.settled, self.seen) = (settled, seen);
        self.missed = missing;
        self.has_polled = true;
        Ok(())
    }
}

/// Has the kernel carry out orders under the policy of that number; under another they are pointless.
pub(super) async fn carry_out(
    datapath: &SharedDatapath,
    generation: u64,
    orders: &[ConnectionOrder],
) -> Result<(), CountError> {
    for orders in orders.chunks(AT_ONCE) {
        {
            let datapath = datapath.read();
            if datapath.manifest().generation != generation {
                return Ok(());
            }
            datapath.recount(orders)?;
        }
        yield_now().await;
    }
    Ok(())
}
