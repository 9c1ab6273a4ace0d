//! Who must not be locked out, and why.

use std::net::IpAddr;

use super::warning::Role;

/// An address that must not be locked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Guarded {
    pub(super) address: IpAddr,
    pub(super) why: Why,
}

/// Why it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// It has an SSH session with this address and port of the machine.
    Ssh { local: IpAddr, port: u16 },
    /// It is a default gateway.
    Gateway,
}

impl Why {
    pub(super) const fn role(self) -> Role {
        match self {
            Self::Ssh { .. } => Role::SshPeer,
            Self::Gateway => Role::Gateway,
        }
    }
}
