//! Addresses that only a forced ban may contain: this machine's own, its SSH peers and gateways.

use std::fmt;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use limiter_protocol::bans::Session;

use super::{GuardProbe, GuardedAddresses, ProbeError, guarded::GuardReason};

/// The addresses that must not be banned, at one time.
#[derive(Clone, Debug, Default)]
pub struct ProtectedAddresses(Vec<(IpNet, HostRole)>);

/// The role of an address for this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostRole {
    Loopback,
    OwnAddress,
    SshPeer,
    Gateway,
}

impl HostRole {
    const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "the loopback",
            Self::OwnAddress => "an address of this host",
            Self::SshPeer => "the peer of an SSH session",
            Self::Gateway => "a default gateway",
        }
    }
}

/// Why a prefix must not be banned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    prefix: IpNet,
    protected: IpNet,
    role: HostRole,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = self.role.name();
        if self.protected.contains(&self.prefix) {
            write!(formatter, "it is {role}")
        } else {
            write!(formatter, "{} in it is {role}", self.protected.addr())
        }
    }
}

impl ProtectedAddresses {
    /// Probes for the addresses; returns all or an error.
    pub async fn query(probe: &mut GuardProbe) -> Result<Self, ProbeError> {
        Ok(Self::new(probe.query().await?))
    }

    fn new(guarded_addresses: GuardedAddresses) -> Self {
        let mut all = vec![
            (
                IpNet::V4(Ipv4Net::new_assert([127, 0, 0, 0].into(), 8)),
                HostRole::Loopback,
            ),
            (
                IpNet::V6(Ipv6Net::new_assert([0, 0, 0, 0, 0, 0, 0, 1].into(), 128)),
                HostRole::Loopback,
            ),
        ];
        let own = guarded_addresses.own.into_iter();
        all.extend(own.map(|address| (address.into(), HostRole::OwnAddress)));
        all.extend(guarded_addresses.guarded.into_iter().map(|guarded| {
            let role = match guarded.why {
                GuardReason::Ssh { .. } => HostRole::SshPeer,
                GuardReason::Gateway => HostRole::Gateway,
            };
            (guarded.address.into(), role)
        }));
        Self(all)
    }

    /// Adds the peer of the SSH session that requests the ban.
    #[must_use]
    pub fn with(mut self, session: Option<Session>) -> Self {
        let peer = session.map(|session| (session.peer.into(), HostRole::SshPeer));
        self.0.extend(peer);
        self
    }

    /// Returns the number of addresses, without the loopback.
    #[must_use]
    pub fn addresses(&self) -> usize {
        let mut addresses: Vec<IpNet> = self.0.iter().map(|(prefix, _)| *prefix).collect();
        addresses.retain(|prefix| !prefix.addr().is_loopback());
        addresses.sort_unstable();
        addresses.dedup();
        addresses.len()
    }

    /// Returns why a prefix must not be banned; `None`: it may be.
    #[must_use]
    pub fn refusal(&self, prefix: IpNet) -> Option<Refusal> {
        let meets = |other: &IpNet| prefix.contains(other) || other.contains(&prefix);
        let mut all = self.0.iter();
        let (protected, role) = all.find(|(other, _)| meets(other))?;
        Some(Refusal {
            prefix,
            protected: *protected,
            role: *role,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_meet_somebody_protected() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let protected = ProtectedAddresses(vec![
            (net("127.0.0.0/8"), HostRole::Loopback),
            (net("192.0.2.1/32"), HostRole::OwnAddress),
            (net("203.0.113.9/32"), HostRole::SshPeer),
            (net("fe80::1/128"), HostRole::Gateway),
        ]);
        for (prefix, expected) in [
            ("127.0.0.1/32", Some("it is the loopback")),
            ("127.0.0.0/8", Some("it is the loopback")),
            ("126.0.0.0/7", Some("127.0.0.0 in it is the loopback")),
            ("192.0.2.1/32", Some("it is an address of this host")),
            (
                "192.0.2.0/24",
                Some("192.0.2.1 in it is an address of this host"),
            ),
            ("203.0.113.9/32", Some("it is the peer of an SSH session")),
            ("fe80::/10", Some("fe80::1 in it is a default gateway")),
            ("192.0.2.2/32", None),
            ("198.51.100.0/24", None),
            ("fe80::2/128", None),
        ] {
            let reported = protected
                .refusal(net(prefix))
                .map(|refusal| refusal.to_string());
            assert_eq!(reported.as_deref(), expected, "{prefix}");
        }
    }
}
