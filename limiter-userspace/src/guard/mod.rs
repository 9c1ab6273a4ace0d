//! Warns of limits and lists that would lock out those through whom the machine is reached: the
//! peers of its SSH sessions, and its default gateways.
//!
//! The kernel and the records of logins tell who they are (`probe`); what a policy means for them
//! follows from the policy alone (`lockout`). Nothing is refused: a warning may be wrong, as for a
//! session over an interface that is not limited.
//!
//! Bans of them, and of this machine itself, are refused unless they are forced
//! (`protected`). Every ban is, while they are unknown: a missing answer does not mean nobody.

mod asked;
mod blocked;
pub mod forged;
mod gateways;
mod guarded;
mod lockout;
mod packets;
mod peers;
mod probe;
mod protected;
mod records;
mod sessions;
mod sockets;
#[cfg(test)]
mod tests;
mod warning;

use limiter_policy::policy::Policy;
use thiserror::Error;
use tracing::warn;

use self::probe::GuardedAddresses;
pub use self::{
    asked::PeersError,
    peers::{CountedPeer, PeerBudget},
    probe::{GuardProbe, ProbeError},
    protected::{Protected, Refusal},
    records::are_kept as are_sessions_recorded,
    sessions::started_from,
    warning::{BudgetOwner, Role, Warning},
};

/// The machine did not say whom a policy must not lock out.
#[derive(Debug, Error)]
#[error("cannot tell who must not be locked out: {0}")]
pub struct Unknown(#[from] ProbeError);

/// Returns what a policy's limits and lists would do now to those who must not be locked out of
/// this machine, in words. If that cannot be known, the warning says so.
pub async fn warnings(policy: &Policy) -> Vec<String> {
    match guarded_addresses().await {
        Ok(guarded_addresses) => in_words(policy, &guarded_addresses),
        Err(unknown) => vec![unknown.to_string()],
    }
}

/// Returns the [`warnings`] of a policy that another, which is in force, does not deserve.
///
/// # Errors
///
/// The machine does not say whom a policy must not lock out.
pub async fn new_warnings(old: &Policy, new: &Policy) -> Result<Vec<String>, Unknown> {
    let guarded_addresses = guarded_addresses().await?;
    let known = in_words(old, &guarded_addresses);
    let mut warnings = in_words(new, &guarded_addresses);
    warnings.retain(|warning| !known.contains(warning));
    Ok(warnings)
}

fn in_words(policy: &Policy, guarded_addresses: &GuardedAddresses) -> Vec<String> {
    let blocked = blocked::warnings(policy, &guarded_addresses.guarded, &guarded_addresses.own);
    let held = lockout::warnings(policy, guarded_addresses.guarded.clone());
    let held = held.iter().map(ToString::to_string);
    blocked
        .iter()
        .map(ToString::to_string)
        .chain(held)
        .collect()
}

/// Returns the peers whom this host itself asks, and whose answers limits of a policy count.
pub async fn counted_peers(policy: &Policy) -> Result<Vec<CountedPeer<'_>>, PeersError> {
    let peers = asked::peers(peers::count_by_tcp(policy)).await?;
    Ok(peers::counted(policy, &peers))
}

/// Logs what a policy's lists would do to them.
pub async fn warn_of_blocked(policy: &Policy) {
    match guarded_addresses().await {
        Ok(GuardedAddresses { own, guarded }) => {
            for warning in blocked::warnings(policy, &guarded, &own) {
                warn!("{warning}");
            }
        }
        Err(unknown) => warn!("{unknown}"),
    }
}

/// Logs the [`warnings`].
pub async fn warn_of(policy: &Policy) {
    for warning in warnings(policy).await {
        warn!("{warning}");
    }
}

/// Returns who must not be locked out of this machine now, except itself by its loopback. Its own
/// addresses are included: a list that blocks them blocks its neighbours.
async fn guarded_addresses() -> Result<GuardedAddresses, Unknown> {
    let mut guarded_addresses = GuardProbe::default().ask().await?;
    guarded_addresses
        .own
        .retain(|address| !address.is_loopback());
    guarded_addresses
        .guarded
        .retain(|guarded| !guarded.address.is_loopback());
    Ok(guarded_addresses)
}
