//! Warns of limits and lists that would lock out those without whom nobody reaches the machine: the peers
//! of its SSH sessions, and its default gateways.
//!
//! Who they are is asked of the kernel and of those who write down who has logged in (`asker`); what a
//! policy means for them is told from the policy alone (`lockout`). Nothing is refused: a warning may
//! be wrong, as for a session that goes over an interface that is not limited.
//!
//! Bans of them, and of this machine itself (`addresses`), are refused unless they are forced
//! (`protected`). Where they cannot be known, so is every ban: no answer is never taken for nobody.

mod addresses;
mod asker;
mod blocked;
pub mod forged;
mod gateways;
mod lockout;
mod netlink;
mod protected;
mod records;
mod sessions;
mod sockets;
#[cfg(test)]
mod tests;
mod warning;

use std::net::IpAddr;

use limiter_policy::policy::Policy;
use tracing::warn;

use self::asker::People;
pub use self::{
    asker::{AskError, Asker},
    protected::{Protected, Refusal, Session},
    records::are_kept as are_sessions_recorded,
    warning::{Budget, Role, Warning},
};

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
}

/// What a policy's limits and lists would do to those who should not be locked out of this machine,
/// as it is now, in words. Where that cannot be known, that is the warning.
pub async fn warnings(policy: &Policy) -> Vec<String> {
    let people = match people().await {
        Ok(people) => people,
        Err(warning) => return vec![warning],
    };
    let blocked = blocked::warnings(policy, &people.guarded, &people.own);
    let held = lockout::warnings(policy, people.guarded);
    let held = held.iter().map(ToString::to_string);
    blocked
        .iter()
        .map(ToString::to_string)
        .chain(held)
        .collect()
}

/// Writes what a policy's lists would do to them to the log.
pub async fn warn_of_blocked(policy: &Policy) {
    match people().await {
        Ok(People { own, guarded }) => {
            for warning in blocked::warnings(policy, &guarded, &own) {
                warn!("{warning}");
            }
        }
        Err(warning) => warn!("{warning}"),
    }
}

/// Writes the [`warnings`] to the log.
pub async fn warn_of(policy: &Policy) {
    for warning in warnings(policy).await {
        warn!("{warning}");
    }
}

/// Who should not be locked out of this machine, as it is now, but for itself by its loopback. This
/// machine's own addresses are among them: whoever blocks them has blocked its neighbours.
async fn people() -> Result<People, String> {
    let asked = Asker::default().ask().await;
    let mut people =
        asked.map_err(|error| format!("cannot tell who must not be locked out: {error}"))?;
    people.own.retain(|address| !address.is_loopback());
    people
        .guarded
        .retain(|guarded| !guarded.address.is_loopback());
    Ok(people)
}
