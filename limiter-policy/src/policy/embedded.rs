//! IPv6 prefixes with embedded IPv4 addresses. Their hosts belong to different owners, even in one /64.
//!
//! 6to4 (2002::/16) is different: each of its /48s is a single IPv4 address, so a /64 or a /48 is one site.

use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv6Net};

/// The lengths of a translator's prefix (RFC 6052).
pub(crate) const NAT64_LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

/// The well-known prefixes: NAT64's (RFC 6052, RFC 8215), and Teredo's (RFC 4380), where a /64 has all
/// clients of one server.
const KNOWN: [(&str, Ipv6Net); 3] = [
    ("NAT64", known([0x64, 0xff9b, 0, 0], 96)),
    ("NAT64", known([0x64, 0xff9b, 1, 0], 48)),
    ("Teredo", known([0x2001, 0, 0, 0], 32)),
];

/// The longest prefix that is taken for a single owner's: networks have a /64 or more.
const NETWORK: u8 = 64;

/// A prefix with embedded IPv4 addresses, and the technique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// Its name: `NAT64`, `Teredo`.
    pub name: &'static str,
    /// The prefix.
    pub prefix: Ipv6Net,
}

const fn known([a, b, c, d]: [u16; 4], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), length)
}

/// Returns the well-known prefix, or one of a site's `nat64`, that makes an `asked` prefix of a /64 or
/// shorter belong to many owners; `None`: it may have a single owner.
pub(super) fn among(nat64: &[Ipv6Net], asked: IpNet) -> Option<Embedding> {
    let IpNet::V6(asked) = asked else {
        return None;
    };
    let of_site = nat64.iter().map(|prefix| ("NAT64", *prefix));
    let mut all = KNOWN.into_iter().chain(of_site);
    let (name, prefix) = all.find(|(_, prefix)| {
        let is_network = asked.prefix_len() <= NETWORK;
        asked.contains(prefix) || (is_network && prefix.contains(&asked))
    })?;
    Some(Embedding { name, prefix })
}

/// Returns the well-known prefix that contains an address, if any.
#[must_use]
pub fn embedding_of(address: Ipv6Addr) -> Option<Embedding> {
    let (name, prefix) = KNOWN
        .into_iter()
        .find(|(_, prefix)| prefix.contains(&address))?;
    Some(Embedding { name, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_many_owners() {
        let nat64 = ["2001:db8:64::/96", "2001:db8:100::/40"];
        let nat64 = nat64.map(|prefix| prefix.parse().expect("a prefix"));
        let check = |asked: &str, expected: Option<&str>| {
            let found = among(&nat64, asked.parse().expect("a prefix"));
            let shown = found.map(|found| format!("{} {}", found.name, found.prefix));
            assert_eq!(shown.as_deref(), expected, "{asked}");
        };
        for asked in [
            "64:ff9b::/96",
            "64:ff9b::/64",
            "64:ff9b::/48",
            "64:ff9b::/32",
        ] {
            check(asked, Some("NAT64 64:ff9b::/96"));
        }
        check("64:ff9b::c000:201/128", None);
        check("64:ff9b::c000:200/120", None);
        check("64:ff9b:0:1::/64", None);
        check("64:ff9b:1:7::/64", Some("NAT64 64:ff9b:1::/48"));
        check("2001:0:c000:201::/64", Some("Teredo 2001::/32"));
        check("2001:0:c000::/48", Some("Teredo 2001::/32"));
        check("2001:db8:64::/64", Some("NAT64 2001:db8:64::/96"));
        check("2001:db8:64:1::/64", None);
        check("2001:db8:1c0:2::/64", Some("NAT64 2001:db8:100::/40"));
        check("2001:db8:1c0:2:1::/80", None);
        // 6to4: one site.
        check("2002:c000:201::/48", None);
        check("2002:c000:201:1::/64", None);
        check("192.0.2.0/24", None);
        check("::/0", Some("NAT64 64:ff9b::/96"));
    }
}
