//! Warns of limits and lists that would lock out guarded addresses: the peers of the machine's SSH sessions,
//! and its default gateways.
//!
//! `probe` finds these addresses by asking the kernel and the records of logins. `lockout` and `blocked` judge
//! a policy by its text alone. A warning refuses nothing, as it may be wrong, for example for a session over an
//! interface that is not limited.
//!
//! A ban of such an address, or of this machine itself, is refused unless forced (`protected`). While the
//! addresses are unknown, every ban is refused: a failed query does not mean that there are none.

mod blocked;
pub mod forged;
mod gateways;
mod guarded;
mod lockout;
mod own_peers;
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
    own_peers::PeersError,
    peers::{CountedPeer, PeerBudget},
    probe::{GuardProbe, ProbeError},
    protected::{ProtectedAddresses, Refusal},
    records::are_kept as are_sessions_recorded,
    sessions::started_from,
    warning::{BudgetKey, Role, Warning},
};

/// The addresses to guard cannot be found.
#[derive(Debug, Error)]
#[error("cannot tell who must not be locked out: {0}")]
pub struct GuardedAddressesError(#[from] ProbeError);

/// Returns warnings of limits and lists that would lock out guarded addresses now, in words. If the addresses
/// cannot be found, the warning says so.
pub async fn warnings(policy: &Policy) -> Vec<String> {
    match guarded_addresses().await {
        Ok(guarded_addresses) => in_words(policy, &guarded_addresses),
        Err(unknown) => vec![unknown.to_string()],
    }
}

/// Returns the [`warnings`] of a new policy that the old one does not have.
///
/// # Errors
///
/// The guarded addresses cannot be found.
pub async fn new_warnings(
    old: &Policy,
    new: &Policy,
) -> Result<Vec<String>, GuardedAddressesError> {
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

/// Returns this host's own peers with replies that limits of a policy count.
pub async fn counted_peers(policy: &Policy) -> Result<Vec<CountedPeer<'_>>, PeersError> {
    let peers = own_peers::peers(peers::are_tcp_replies_counted(policy)).await?;
    Ok(peers::counted(policy, &peers))
}

/// Logs warnings of lists that would drop guarded addresses.
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

/// Returns the addresses to guard, without the loopback. This machine's own addresses are included: a list that
/// blocks one blocks its neighbours.
async fn guarded_addresses() -> Result<GuardedAddresses, GuardedAddressesError> {
    let mut guarded_addresses = GuardProbe::default().query().await?;
    guarded_addresses
        .own
        .retain(|address| !address.is_loopback());
    guarded_addresses
        .guarded
        .retain(|guarded| !guarded.address.is_loopback());
    Ok(guarded_addresses)
}
