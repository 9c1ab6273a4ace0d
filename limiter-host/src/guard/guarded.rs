//! Guarded addresses: the ones that a policy must not lock out, and why.

use std::net::IpAddr;

use super::warning::Role;

/// An address that a policy must not lock out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GuardedAddress {
    pub(super) address: IpAddr,
    pub(super) why: GuardReason,
}

/// The reason to guard an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GuardReason {
    /// It has an SSH session with this address and port of the machine.
    Ssh { local: IpAddr, port: u16 },
    /// It is a default gateway.
    Gateway,
}

impl GuardReason {
    pub(super) const fn role(self) -> Role {
        match self {
            Self::Ssh { .. } => Role::SshPeer,
            Self::Gateway => Role::Gateway,
        }
    }
}
