//! Gives the kernel's programs the largest receive buffer (`net.core.rmem_max`). It decides on the window scale that
//! a SYN cookie may promise, and no socket structure that they can read has it.
//!
//! A value holds for a moment only. So the programs promise no window scale if the daemon is gone, or where a route
//! may decide on windows.

use std::{convert::Infallible, io, time::Duration};

use limiter_common::answer::RmemMax;
use limiter_datapath::kernel::monotonic_now;
use limiter_host::{
    netlink::{Channel, DumpError},
    syn_cookies::are_used,
};
use rtnetlink::{
    packet_route::{
        RouteNetlinkMessage,
        route::{RouteAttribute, RouteMessage, RouteMetric},
    },
    sys::protocols::NETLINK_ROUTE,
};
use thiserror::Error;
use tokio::{
    net::TcpSocket,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

use super::shared_datapath::SharedDatapath;

/// The interval of renewals, and the lifetime of a value, which survives a missed renewal.
const INTERVAL: Duration = Duration::from_secs(1);
const HOLDS: Duration = Duration::from_millis(2500);

/// The interval of reading routes, how long the kernel may take to list them, and the most routes to read.
const ROUTES_INTERVAL: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(1);
const MOST_ROUTES: usize = 4096;

/// The most that a socket can ask for: the kernel doubles it, and keeps the result in an `i32`.
const MOST: u32 = i32::MAX as u32 / 2;

/// Why no window scale is promised.
#[derive(Debug, Error)]
enum WindowScaleError {
    #[error("the largest receive buffer cannot be read: {0}")]
    Buffer(#[from] io::Error),
    #[error("the kernel does not list its routes, which may bound windows: {0}")]
    Routes(#[from] DumpError),
    #[error("the kernel has not listed its routes, which may bound windows, within {PATIENCE:?}")]
    Late,
    #[error("a route bounds windows (`window`)")]
    Bounded,
}

/// Renews the value, forever, while a limit answers with SYN cookies; logs whether it is known.
pub(super) async fn maintain(datapath: &SharedDatapath) -> Infallible {
    let mut routes = Channel::new(NETLINK_ROUTE).with_most(MOST_ROUTES);
    let mut read_at: Option<Instant> = None;
    let mut bounded = Ok(());
    let mut before = None;
    loop {
        if are_used(&datapath.read().manifest().policy) {
            if read_at.is_none_or(|at| at.elapsed() >= ROUTES_INTERVAL) {
                bounded = unbounded(&mut routes).await;
                read_at = Some(Instant::now());
            }
            let reason = match (&bounded, largest()) {
                (Ok(()), Ok(bytes)) => write_map(datapath, bytes),
                (Err(uncertain), _) => Some(uncertain.to_string()),
                (Ok(()), Err(error)) => Some(WindowScaleError::from(error).to_string()),
            };
            if before != reason {
                if let Some(reason) = &reason {
                    warn!("SYN cookies promise no window scale: {reason}");
                } else {
                    info!("SYN cookies may promise a window scale again");
                }
            }
            before = reason;
        }
        sleep(INTERVAL).await;
    }
}

/// Gives the value to the programs; returns why that failed.
fn write_map(datapath: &SharedDatapath, bytes: u32) -> Option<String> {
    let holds = u64::try_from(HOLDS.as_nanos()).unwrap_or(0);
    let word = RmemMax::new(bytes, monotonic_now() + holds);
    let datapath = datapath.read();
    let set = datapath.source_maps()?.rmem_max().set(word);
    set.err().map(|error| error.to_string())
}

/// Returns the setting, in bytes. A socket finds it by asking for more than it may have, as not every network
/// namespace has the file of the setting.
fn largest() -> io::Result<u32> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(MOST)?;
    // The kernel doubles the granted size.
    Ok(socket.recv_buffer_size()? / 2)
}

/// Fails if a route bounds the windows of its connections, or if the routes are not known.
async fn unbounded(routes: &mut Channel) -> Result<(), WindowScaleError> {
    let question = RouteNetlinkMessage::GetRoute(RouteMessage::default());
    let bounds = |response| match response {
        RouteNetlinkMessage::NewRoute(route) => Some(bounds_windows(&route)),
        _ => None,
    };
    let all = match timeout(PATIENCE, routes.dump(question, &[], bounds)).await {
        Ok(all) => all?,
        Err(_) => return Err(WindowScaleError::Late),
    };
    if all.contains(&true) {
        Err(WindowScaleError::Bounded)
    } else {
        Ok(())
    }
}

fn bounds_windows(route: &RouteMessage) -> bool {
    route.attributes.iter().any(|attribute| match attribute {
        RouteAttribute::Metrics(metrics) => metrics
            .iter()
            .any(|metric| matches!(metric, RouteMetric::Window(bytes) if *bytes != 0)),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use anyhow::{Result, ensure};
    use testbed::Namespace;

    use super::*;

    fn within<T: Send>(
        namespace: &Namespace,
        run: impl AsyncFnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(run())
        })
    }

    #[test]
    fn the_setting_is_read_in_any_namespace() -> Result<()> {
        let read: u32 = fs::read_to_string("/proc/sys/net/core/rmem_max")?
            .trim()
            .parse()?;
        let found = within(&Namespace::new()?, async || Ok(largest()?))?;
        assert_eq!(found, read.min(MOST));
        Ok(())
    }

    #[test]
    fn routes_that_bound_windows_are_seen() -> Result<()> {
        let namespace = Namespace::new()?;
        let look = || {
            within(&namespace, async || {
                let mut routes = Channel::new(NETLINK_ROUTE).with_most(MOST_ROUTES);
                Ok(unbounded(&mut routes).await)
            })
        };
        namespace.ip(&["route", "add", "192.0.2.0/24", "dev", "lo", "mtu", "1400"])?;
        look()??;
        for prefix in ["198.51.100.0/24", "2001:db8::/32"] {
            namespace.ip(&["route", "add", prefix, "dev", "lo", "window", "9000"])?;
            let reported = look()?;
            ensure!(
                matches!(reported, Err(WindowScaleError::Bounded)),
                "{prefix}: {reported:?}"
            );
            namespace.ip(&["route", "del", prefix, "dev", "lo"])?;
            look()??;
        }
        Ok(())
    }
}
