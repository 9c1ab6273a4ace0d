//! Warns of limits and lists that would lock out those without whom nobody reaches the machine: the peers
//! of its SSH sessions, and its default gateways.
//!
//! Who they are is asked of the kernel (`sessions`, `gateways`); what a policy means for them is
//! told from the policy alone (`lockout`). Nothing is refused: a warning may be wrong, as for a
//! session that goes over an interface that is not limited.
//!
//! Bans of them, and of this machine itself (`addresses`), are refused unless they are forced
//! (`protected`).

mod addresses;
mod blocked;
mod gateways;
mod lockout;
mod protected;
mod sessions;
#[cfg(test)]
mod tests;
mod warning;

use std::{collections::BTreeSet, future::Future, io, net::IpAddr, time::Duration};

use rtnetlink::proto::NetlinkProtoError;
use thiserror::Error;
use tokio::time::timeout;
use tracing::{debug, warn};

pub use self::{
    blocked::{Blocked, Lockout},
    protected::{Protected, Refusal, Session},
    warning::{Budget, Role, Warning},
};
use crate::policy::Policy;

/// How long the kernel may take to tell one thing: the whole table of a router, or of a server
/// with a million connections, is not worth waiting for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most sessions of a port that are looked at, lest each start of a bastion host goes through
/// all of its.
const MOST: usize = 64;

/// An address that should not be locked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Guarded {
    address: IpAddr,
    why: Why,
}

/// Why it should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// It has an SSH session with this address and port of the machine.
    Ssh { local: IpAddr, port: u16 },
    /// It is a default gateway.
    Gateway,
}

impl Why {
    const fn role(self) -> Role {
        match self {
            Self::Ssh { .. } => Role::SshPeer,
            Self::Gateway => Role::Gateway,
        }
    }

    const fn ssh_port(self) -> Option<u16> {
        match self {
            Self::Ssh { port, .. } => Some(port),
            Self::Gateway => None,
        }
    }
}

/// The kernel does not tell.
#[derive(Debug, Error)]
enum GatherError {
    /// There is no netlink socket to be had, or it refuses.
    #[error(transparent)]
    Netlink(#[from] io::Error),
    /// The conversation broke off.
    #[error(transparent)]
    Conversation(#[from] NetlinkProtoError),
    /// The routes are not told.
    #[error(transparent)]
    Routes(#[from] rtnetlink::Error),
}

/// What a policy's lists and limits would do to those who should not be locked out of this machine, as it
/// is now. What the kernel does not tell is not warned of.
pub async fn warnings(policy: &Policy) -> Vec<Lockout> {
    let own = sessions::own();
    let own_port = own.and_then(|own| own.why.ssh_port());
    // The own one first: it is the one to be named where several are alike.
    let mut guarded: Vec<Guarded> = own.into_iter().collect();
    let ports: BTreeSet<u16> = own_port.into_iter().chain([sessions::SSH]).collect();
    for port in ports {
        let sessions = told("SSH sessions", sessions::established(port)).await;
        guarded.extend(sessions.into_iter().take(MOST));
    }
    guarded.extend(told("default gateways", gateways::all()).await);
    guarded.retain(|guarded| !guarded.address.is_loopback());
    blocked::lockouts(policy, &guarded)
}

/// Writes the [`warnings`] to the log.
pub async fn warn_of(policy: &Policy) {
    for warning in warnings(policy).await {
        warn!("{warning}");
    }
}

async fn told<T>(what: &str, answer: impl Future<Output = Result<Vec<T>, GatherError>>) -> Vec<T> {
    match timeout(PATIENCE, answer).await {
        Ok(Ok(told)) => return told,
        Ok(Err(error)) => debug!("the kernel does not tell the {what}: {error}"),
        Err(_) => debug!("the kernel has not told the {what} within {PATIENCE:?}"),
    }
    Vec::new()
}
