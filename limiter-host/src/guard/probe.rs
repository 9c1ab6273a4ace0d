//! Finds the guarded addresses: all queries are answered, or the probe fails.

use std::{collections::BTreeSet, fs::File, future::Future, net::IpAddr, time::Duration};

use rtnetlink::sys::protocols::{NETLINK_ROUTE, NETLINK_SOCK_DIAG};
use thiserror::Error;
use tokio::{task::spawn_blocking, time::timeout};

use super::{
    gateways,
    guarded::{GuardReason, GuardedAddress},
    records::{self, RecordError},
    sessions, sockets,
};
use crate::netlink::{Channel, DumpError, addresses};

/// The timeout of one query: a router's whole table comes with its default route.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many descriptors are reserved for reading files, which cannot be kept open.
const RESERVE: usize = 4;

/// The guarded addresses are unknown.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The kernel does not answer.
    #[error("the kernel does not list the {objects}: {error}")]
    Kernel {
        /// The kind of objects queried.
        objects: &'static str,
        /// The kernel's error.
        error: DumpError,
    },
    /// The kernel takes too long.
    #[error("the kernel has not listed the {0} within {PATIENCE:?}")]
    Late(&'static str),
    /// The records of logins cannot be read.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// The task that reads the records failed.
    #[error("reading who has logged in has failed: {0}")]
    Failed(#[from] tokio::task::JoinError),
}

/// The guarded addresses at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct GuardedAddresses {
    /// This machine's own addresses.
    pub(super) own: Vec<IpAddr>,
    /// The others: SSH peers and gateways.
    pub(super) guarded: Vec<GuardedAddress>,
}

/// Finds the guarded addresses. It keeps the descriptors that this takes, since a later probe might find none
/// free.
pub struct GuardProbe {
    /// The SSH session that started this process.
    own_session: Option<GuardedAddress>,
    routes: Channel,
    sockets: Channel,
    /// Released while files are read.
    reserve: Vec<File>,
}

impl Default for GuardProbe {
    fn default() -> Self {
        Self {
            own_session: sessions::own(),
            routes: Channel::new(NETLINK_ROUTE),
            sockets: Channel::new(NETLINK_SOCK_DIAG),
            reserve: Vec::new(),
        }
    }
}

impl GuardProbe {
    pub(super) async fn query(&mut self) -> Result<GuardedAddresses, ProbeError> {
        let own = within("addresses", addresses::own(&mut self.routes)).await?;
        // This process's session comes first: a warning about several similar addresses names the first.
        let mut guarded = Vec::from_iter(self.own_session);
        guarded.extend(self.authenticated().await?);
        let gateways = within("default gateways", gateways::all(&mut self.routes)).await?;
        guarded.extend(gateways.into_iter().map(|address| GuardedAddress {
            address,
            why: GuardReason::Gateway,
        }));
        Ok(GuardedAddresses { own, guarded })
    }

    /// Returns the sessions of peers that have logged in and are connected.
    async fn authenticated(&mut self) -> Result<Vec<GuardedAddress>, ProbeError> {
        let recorded = self.recorded().await?;
        let mut sessions = Vec::new();
        if recorded.is_empty() {
            // Opens the socket before it is needed; the next use reports a failure.
            let _ = self.sockets.open();
            return Ok(sessions);
        }
        let ports = within("listening sockets", sockets::root_ports(&mut self.sockets)).await?;
        for peer in recorded {
            let connections = sockets::of_peer(&mut self.sockets, peer, &ports);
            let connections = within("SSH sessions", connections).await?;
            sessions.extend(
                connections
                    .iter()
                    .map(|connection| sessions::session(peer, connection.local, connection.port)),
            );
        }
        Ok(sessions)
    }

    async fn recorded(&mut self) -> Result<BTreeSet<IpAddr>, ProbeError> {
        self.reserve.clear();
        let recorded = spawn_blocking(records::addresses).await;
        // If other tasks took the freed descriptors meanwhile, the reserve stays smaller until they release
        // them.
        let spare = (0..RESERVE).map_while(|_| File::open("/").ok());
        self.reserve.extend(spare);
        Ok(recorded??)
    }
}

async fn within<T>(
    objects: &'static str,
    response: impl Future<Output = Result<T, DumpError>>,
) -> Result<T, ProbeError> {
    match timeout(PATIENCE, response).await {
        Ok(response) => response.map_err(|error| ProbeError::Kernel { objects, error }),
        Err(_) => Err(ProbeError::Late(objects)),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a question takes time")]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_that_nobody_answers_is_given_up() {
        let begun = Instant::now();
        let asked = within("routes", pending::<Result<(), DumpError>>()).await;
        assert!(
            matches!(asked, Err(ProbeError::Late("routes"))),
            "{asked:?}"
        );
        let took = begun.elapsed();
        assert!(took.abs_diff(PATIENCE) < Duration::from_secs(1), "{took:?}");
    }
}
