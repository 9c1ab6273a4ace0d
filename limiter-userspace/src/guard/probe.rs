//! Asks who must not be locked out: all questions are answered, or it is an error.

use std::{collections::BTreeSet, fs::File, future::Future, net::IpAddr, time::Duration};

use rtnetlink::sys::protocols::{NETLINK_ROUTE, NETLINK_SOCK_DIAG};
use thiserror::Error;
use tokio::{task::spawn_blocking, time::timeout};

use super::{
    gateways,
    guarded::{Guarded, Why},
    records::{self, RecordError},
    sessions, sockets,
};
use crate::netlink::{Channel, DumpError, addresses};

/// How long one question may take: a router's whole table comes with its default route.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many descriptors are reserved for reading files, which cannot be kept open.
const RESERVE: usize = 4;

/// It is unknown who must not be locked out.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The kernel does not answer.
    #[error("the kernel does not list the {what}: {error}")]
    Kernel {
        /// What it was asked for.
        what: &'static str,
        /// Why not.
        error: DumpError,
    },
    /// The kernel takes too long.
    #[error("the kernel has not listed the {0} within {PATIENCE:?}")]
    Late(&'static str),
    /// It is unknown who has logged in.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// The task that reads it has failed.
    #[error("reading who has logged in has failed: {0}")]
    Failed(#[from] tokio::task::JoinError),
}

/// Those who must not be locked out, at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct GuardedAddresses {
    /// This machine's own addresses.
    pub(super) own: Vec<IpAddr>,
    /// The others: SSH peers and gateways.
    pub(super) guarded: Vec<Guarded>,
}

/// Asks, and keeps the descriptors that this takes.
pub struct GuardProbe {
    /// The session that this process was started from.
    own_session: Option<Guarded>,
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
    pub(super) async fn ask(&mut self) -> Result<GuardedAddresses, ProbeError> {
        let own = within("addresses", addresses::own(&mut self.routes)).await?;
        // This process's session first: it is the one to name if several are alike.
        let mut guarded = Vec::from_iter(self.own_session);
        guarded.extend(self.authenticated().await?);
        let gateways = within("default gateways", gateways::all(&mut self.routes)).await?;
        guarded.extend(gateways.into_iter().map(|address| Guarded {
            address,
            why: Why::Gateway,
        }));
        Ok(GuardedAddresses { own, guarded })
    }

    /// Returns the sessions of peers that have logged in and are connected.
    async fn authenticated(&mut self) -> Result<Vec<Guarded>, ProbeError> {
        let recorded = self.recorded().await?;
        let mut sessions = Vec::new();
        if recorded.is_empty() {
            // Opened before it is needed; a failure shows when it is.
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
        // What others have taken meanwhile is missing until they release it.
        let spare = (0..RESERVE).map_while(|_| File::open("/").ok());
        self.reserve.extend(spare);
        Ok(recorded??)
    }
}

async fn within<T>(
    what: &'static str,
    answer: impl Future<Output = Result<T, DumpError>>,
) -> Result<T, ProbeError> {
    match timeout(PATIENCE, answer).await {
        Ok(answer) => answer.map_err(|error| ProbeError::Kernel { what, error }),
        Err(_) => Err(ProbeError::Late(what)),
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
