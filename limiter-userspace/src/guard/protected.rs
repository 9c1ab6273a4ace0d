//! Addresses that are banned by force alone: this machine's own, and those it is reached through.

use std::{fmt, net::IpAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use super::{AskError, Asker, People, Why, sessions};

/// The SSH session that a command was started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The other end.
    pub peer: IpAddr,
}

impl Session {
    /// That of this process; `None`: it has none.
    #[must_use]
    pub fn own() -> Option<Self> {
        let own = sessions::own()?;
        Some(Self { peer: own.address })
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
    /// Asks who they are. Either all of it is answered, or none.
    pub async fn ask(asker: &mut Asker) -> Result<Self, AskError> {
        Ok(Self::new(asker.ask().await?))
    }

    fn new(people: People) -> Self {
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
        let own = people.own.into_iter();
        all.extend(own.map(|address| (address.into(), What::OwnAddress)));
        all.extend(people.guarded.into_iter().map(|guarded| {
            let what = match guarded.why {
                Why::Ssh { .. } => What::SshPeer,
                Why::Gateway => What::Gateway,
            };
            (guarded.address.into(), what)
        }));
        Self(all)
    }

    /// The same, and whoever wants to ban.
    #[must_use]
    pub fn with(mut self, session: Option<Session>) -> Self {
        let peer = session.map(|session| (session.peer.into(), What::SshPeer));
        self.0.extend(peer);
        self
    }

    /// How many addresses there are, but for the loopback.
    #[must_use]
    pub fn addresses(&self) -> usize {
        let mut addresses: Vec<IpNet> = self.0.iter().map(|(prefix, _)| *prefix).collect();
        addresses.retain(|prefix| !prefix.addr().is_loopback());
        addresses.sort_unstable();
        addresses.dedup();
        addresses.len()
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
