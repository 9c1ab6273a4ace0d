//! Whom nobody bans unless by force: those without whom this machine cannot be reached, and itself.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use super::{addresses, gateways, sessions, told};

/// The SSH session that a command was started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The other end.
    pub peer: IpAddr,
    /// The port of this machine.
    pub port: u16,
}

impl Session {
    /// That of this process; `None`: it has none, or sudo does not tell it.
    #[must_use]
    pub fn own() -> Option<Self> {
        let own = sessions::own()?;
        Some(Self {
            peer: own.address,
            port: own.why.ssh_port()?,
        })
    }
}

/// Addresses that are not to be banned, as they are now.
#[derive(Clone, Debug, Default)]
pub struct Protected(Vec<(IpNet, What)>);

/// What somebody is to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Loopback,
    OwnAddress,
    SshPeer,
    Gateway,
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "the loopback",
            Self::OwnAddress => "an address of this host",
            Self::SshPeer => "the peer of an SSH session",
            Self::Gateway => "a default gateway",
        }
    }
}

/// Why a prefix is not to be banned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    prefix: IpNet,
    protected: IpNet,
    what: What,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.what.name();
        if self.protected.contains(&self.prefix) {
            write!(formatter, "it is {what}")
        } else {
            write!(formatter, "{} in it is {what}", self.protected.addr())
        }
    }
}

impl Protected {
    /// Asks the kernel who they are; what it does not tell is not protected. `session`: of whoever
    /// wants to ban.
    pub async fn gather(session: Option<Session>) -> Self {
        let mut all = vec![
            (
                IpNet::V4(Ipv4Net::new_assert([127, 0, 0, 0].into(), 8)),
                What::Loopback,
            ),
            (
                IpNet::V6(Ipv6Net::new_assert([0, 0, 0, 0, 0, 0, 0, 1].into(), 128)),
                What::Loopback,
            ),
        ];
        let mut add = |address: IpAddr, what| all.push((address.into(), what));
        for address in told("addresses", addresses::own()).await {
            add(address, What::OwnAddress);
        }
        if let Some(session) = session {
            add(session.peer, What::SshPeer);
        }
        let port = session.map(|session| session.port);
        let ports: BTreeSet<u16> = port.into_iter().chain([sessions::SSH]).collect();
        for port in ports {
            for session in told("SSH sessions", sessions::established(port)).await {
                add(session.address, What::SshPeer);
            }
        }
        for gateway in told("default gateways", gateways::all()).await {
            add(gateway.address, What::Gateway);
        }
        Self(all)
    }

    /// Why a prefix is not to be banned; `None`: nothing speaks against it.
    #[must_use]
    pub fn refusal(&self, prefix: IpNet) -> Option<Refusal> {
        let meets = |other: &IpNet| prefix.contains(other) || other.contains(&prefix);
        let mut all = self.0.iter();
        let (protected, what) = all.find(|(other, _)| meets(other))?;
        Some(Refusal {
            prefix,
            protected: *protected,
            what: *what,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_meet_somebody_protected() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let protected = Protected(vec![
            (net("127.0.0.0/8"), What::Loopback),
            (net("192.0.2.1/32"), What::OwnAddress),
            (net("203.0.113.9/32"), What::SshPeer),
            (net("fe80::1/128"), What::Gateway),
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
            let told = protected
                .refusal(net(prefix))
                .map(|refusal| refusal.to_string());
            assert_eq!(told.as_deref(), expected, "{prefix}");
        }
    }
}
