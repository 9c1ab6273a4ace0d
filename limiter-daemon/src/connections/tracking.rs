//! Counts connections that the kernel's connection tracking knows and that have no socket here: forwarded ones, and
//! connections to network namespaces behind this host.
//!
//! They are counted by the addresses that their openers sent, before any translation. Events report each change;
//! polls find connections older than the policy, and changes that events missed.

use std::{collections::HashSet, net::IpAddr, time::Duration};

use limiter_common::connection::{ConnectionOrder, Ends};
use limiter_host::netlink::{
    Channel, DumpError, addresses,
    conntrack::{self, ConntrackEvent, Events, TrackedConnection, Tuple, host},
};
use limiter_protocol::TrackingStatus;
use rtnetlink::sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use thiserror::Error;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::{info, warn};

use super::{
    context::PollContext,
    cookie,
    scan::{CPU_DIVISOR, CountError, PATIENCE, ScanState, carry_out},
};
use crate::pace::cpu_time;

/// The most connections to list: more than there is room to count.
const MOST: usize = 4 << 20;

/// The least pause between two polls.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// Why tracked connections are not counted.
#[derive(Debug, Error)]
enum TrackingError {
    #[error(
        "the kernel has no connection tracking, or its module nf_conntrack_netlink is not loaded"
    )]
    Unloaded,
    #[error("the kernel does not list the connections that it tracks: {0}")]
    Kernel(DumpError),
    #[error("the kernel has not answered within {PATIENCE:?}")]
    Late,
    #[error("the kernel does not list this host's addresses: {0}")]
    Addresses(DumpError),
    #[error("the kernel tracks none: is there a rule of nftables or iptables with `ct state`?")]
    Nothing,
    #[error(transparent)]
    Uncounted(#[from] CountError),
}

impl From<DumpError> for TrackingError {
    fn from(error: DumpError) -> Self {
        match error {
            // The kernel's error for a missing part of netfilter.
            DumpError::Io(error) if error.raw_os_error() == Some(libc::EINVAL) => Self::Unloaded,
            error => Self::Kernel(error),
        }
    }
}

/// Polls the tracked connections, and receives their events.
pub(super) struct Tracking {
    conntrack: Channel,
    routes: Channel,
    /// `None`: the kernel sends none.
    events: Option<Events>,
    /// This host's addresses: connections with them have sockets. `None`: not known yet.
    own: Option<HashSet<IpAddr>>,
    known: ScanState,
    /// The CPU time of the last poll.
    cost: Duration,
}

impl Tracking {
    pub(super) fn new() -> Self {
        Self {
            conntrack: Channel::new(NETLINK_NETFILTER).with_most(MOST),
            routes: Channel::new(NETLINK_ROUTE).with_most(MOST),
            events: None,
            own: None,
            known: ScanState::default(),
            cost: Duration::ZERO,
        }
    }

    /// Returns the pause before another poll.
    pub(super) fn pause(&self) -> Duration {
        LEAST_PAUSE.max(self.cost * CPU_DIVISOR)
    }

    /// Counts tracked connections without one of these sockets, and returns them; takes off connections `counted`
    /// before and closed by now. Sets and logs the status.
    pub(super) async fn scan(
        &mut self,
        context: PollContext<'_>,
        generation: u64,
        counted: Vec<u64>,
        sockets: &[(u64, Tuple)],
    ) -> Vec<(u64, Ends)> {
        let before = cpu_time();
        // Before the listing, so that no change in between is missed.
        let late = self.listen();
        let found = self.count(context, generation, counted, sockets).await;
        self.cost = cpu_time().saturating_sub(before);
        set_status(
            context,
            TrackingStatus {
                error: found.as_ref().err().map(ToString::to_string),
                late,
            },
        );
        found.unwrap_or_default()
    }

    /// Has the kernel send events, if it does not yet; returns why it does not.
    fn listen(&mut self) -> Option<String> {
        if self.events.is_none() {
            match Events::open() {
                Ok(events) => self.events = Some(events),
                Err(error) => return Some(format!("the kernel does not tell of them: {error}")),
            }
        }
        host::no_events_reason().map(str::to_owned)
    }

    async fn count(
        &mut self,
        context: PollContext<'_>,
        generation: u64,
        counted: Vec<u64>,
        sockets: &[(u64, Tuple)],
    ) -> Result<Vec<(u64, Ends)>, TrackingError> {
        let own = timeout(PATIENCE, addresses::own(&mut self.routes)).await;
        let own = own.map_err(|_| TrackingError::Late)?;
        let own = own.map_err(TrackingError::Addresses)?.into_iter().collect();
        let own = &*self.own.insert(own);
        let sockets: HashSet<_> = sockets.iter().map(|(_, tuple)| *tuple).collect();
        let mut any_listed = false;
        let open = |tracked: TrackedConnection| {
            any_listed = true;
            let has_socket = has_own_end(&tracked, own)
                || sockets.contains(&tracked.original.reversed())
                || sockets.contains(&tracked.reply.reversed());
            let is_counted = tracked.is_open() == Some(true) && !has_socket;
            is_counted.then(|| cookie_and_ends(&tracked)).flatten()
        };
        let open = timeout(
            PATIENCE,
            conntrack::dump_connections(&mut self.conntrack, open),
        )
        .await;
        let open = open.map_err(|_| TrackingError::Late)??;
        let known = &mut self.known;
        // Connections reported by events are already settled.
        known
            .settle(context.datapath, generation, counted, &open, false)
            .await?;
        if any_listed || host::is_idle() != Some(true) {
            return Ok(open);
        }
        Err(TrackingError::Nothing)
    }

    /// Applies events for the given time; returns whether events were lost.
    pub(super) async fn receive(
        &mut self,
        context: PollContext<'_>,
        generation: u64,
        patience: Duration,
    ) -> bool {
        let end = Instant::now() + patience;
        let mut are_lost = false;
        // Checked after each batch, so that endless events cannot starve the polls.
        while Instant::now() < end {
            let Some(events) = &mut self.events else {
                sleep_until(end).await;
                break;
            };
            let received = timeout_at(end, events.next()).await;
            match received {
                Ok(Ok(batch)) => {
                    are_lost |= batch
                        .iter()
                        .any(|event| matches!(event, ConntrackEvent::Lost));
                    let orders = batch.iter().filter_map(|event| self.order(event));
                    let orders: Vec<_> = orders.collect();
                    if carry_out(context.datapath, generation, &orders)
                        .await
                        .is_err()
                    {
                        // The next poll retries, and reports the error.
                        self.known.settled.clear();
                        are_lost = true;
                    }
                }
                Ok(Err(_)) => {
                    self.events = None;
                    are_lost = true;
                }
                Err(_) => break,
            }
        }
        are_lost
    }

    /// Returns the order that an event calls for.
    fn order(&mut self, event: &ConntrackEvent) -> Option<ConnectionOrder> {
        let (tracked, is_open) = match event {
            ConntrackEvent::There(tracked) => (tracked, tracked.is_open()?),
            ConntrackEvent::Gone(tracked) => (tracked, false),
            ConntrackEvent::Lost => return None,
        };
        if has_own_end(tracked, self.own.as_ref()?) {
            return None;
        }
        let (cookie, ends) = cookie_and_ends(tracked)?;
        let settled = &mut self.known.settled;
        if is_open {
            let is_new = settled.insert(cookie);
            is_new.then(|| ConnectionOrder::open(cookie, ends))
        } else {
            let was_open = settled.remove(&cookie);
            was_open.then(|| ConnectionOrder::closed(cookie))
        }
    }
}

/// Returns the number under which a connection is counted, and its ends.
fn cookie_and_ends(tracked: &TrackedConnection) -> Option<(u64, Ends)> {
    let ends = cookie::ends(&tracked.original)?;
    Some((cookie::of_tracked(tracked, &ends), ends))
}

/// Returns whether this host opened a connection, or accepts it, also after a translation.
fn has_own_end(tracked: &TrackedConnection, own: &HashSet<IpAddr>) -> bool {
    let [opened, accepted] = [tracked.original.source, tracked.reply.source].map(|end| end.ip());
    [opened, accepted]
        .iter()
        .any(|end| end.is_loopback() || own.contains(end))
}

/// Sets the status of counting forwarded connections; logs changes.
fn set_status(context: PollContext<'_>, status: TrackingStatus) {
    let before = context
        .forwarded
        .set(Some(status.clone()))
        .unwrap_or_default();
    if before == status {
        return;
    }
    let TrackingStatus { error, late } = status;
    if let Some(error) = error {
        if before.error.as_ref() != Some(&error) {
            warn!("connections that this host forwards are not counted: {error}");
        }
    } else if let Some(late) = late {
        warn!("connections that this host forwards are counted only once a second: {late}");
    } else {
        info!("connections that this host forwards are counted");
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_the_kernel_lacks_is_told_from_what_it_refuses() {
        let reported =
            |code| TrackingError::from(DumpError::Io(io::Error::from_raw_os_error(code)));
        let lacking = "the kernel has no connection tracking, or its module nf_conntrack_netlink is \
                       not loaded";
        assert_eq!(reported(libc::EINVAL).to_string(), lacking);
        assert_eq!(
            reported(libc::EPERM).to_string(),
            "the kernel does not list the connections that it tracks: Operation not permitted (os \
             error 1)"
        );
    }

    #[test]
    fn whose_connection_it_is() {
        let own = HashSet::from([IpAddr::from([192, 0, 2, 1])]);
        let end = |host| std::net::SocketAddr::from(([192, 0, 2, host], 443));
        for (source, destination, expected) in [(1, 9, true), (9, 1, true), (8, 9, false)] {
            let original = Tuple {
                source: end(source),
                destination: end(destination),
            };
            let mut tracked = TrackedConnection::testing(1, original);
            tracked.reply = original.reversed();
            assert_eq!(has_own_end(&tracked, &own), expected, "{original:?}");
        }
    }
}
