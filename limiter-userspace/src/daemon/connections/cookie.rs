//! The numbers under which connections are counted: the cookie of a socket, and one of our own for what
//! has no socket here.

use limiter_common::{
    address::{Address, Family},
    connection::Ends,
    table::HashKey,
};

use crate::netlink::conntrack::{Tracked, Tuple};

/// The bit above all that a tracked connection's cookie has. The kernel counts cookies of sockets up from
/// 1, and down from -1: none reaches it.
const MARK: u64 = 1 << MARK_BIT;
const MARK_BIT: u32 = 54;

/// The bits below the kernel's number: those of a hash of the ends. That number is a keyed hash of 32 bits,
/// so of a million connections some have the same; nobody knows which.
const ENDS_BITS: u32 = MARK_BIT - u32::BITS;

/// Not secret, and the same for each daemon: the next one finds what this one has counted.
const KEY: HashKey = HashKey {
    first: 0x6e66_5f63_6f6e_6e74,
    second: 0x7261_636b_2d65_6e64,
};

/// The cookie of no connection.
pub(super) const OF_NONE: u64 = 0;

/// Returns the cookie of a tracked connection, with the ends of its packets.
pub(super) const fn of_tracked(tracked: &Tracked, ends: &Ends) -> u64 {
    let hash = ends.hash(&KEY) & ((1 << ENDS_BITS) - 1);
    MARK | (tracked.id as u64) << ENDS_BITS | hash
}

/// Returns whether a cookie is that of a tracked connection, and not of a socket.
pub(super) const fn is_tracked(cookie: u64) -> bool {
    cookie >> MARK_BIT == 1
}

/// Returns the ends of a connection whose packets come in with these addresses and ports; `None`: they are
/// of two families.
pub(super) fn ends(tuple: &Tuple) -> Option<Ends> {
    let [peer, own] =
        [tuple.source, tuple.destination].map(|end| Address::from(end.ip().to_canonical()));
    let are_alike = matches!(
        (peer.family, own.family),
        (Family::V4, Family::V4) | (Family::V6, Family::V6)
    );
    are_alike.then(|| Ends::new(&peer, tuple.source.port(), &own, tuple.destination.port()))
}

#[cfg(test)]
mod tests {
    use limiter_common::connection::note::Name;

    use super::*;

    #[test]
    fn a_cookie_of_our_own_is_none_of_a_socket_and_survives_its_note() {
        // Up from 1, and down from -1.
        for cookie in [0, 1, 1 << 40, MARK - 1, u64::MAX, u64::MAX - (1 << 40)] {
            assert!(!is_tracked(cookie), "{cookie:#x}");
        }
        let address = |host| Address::from(std::net::IpAddr::from([192, 0, 2, host]));
        let ends = |port| Ends::new(&address(1), port, &address(2), 443);
        let end = std::net::SocketAddr::from(([192, 0, 2, 1], 1));
        let tuple = Tuple {
            source: end,
            destination: end,
        };
        for id in [0, 1, u32::MAX] {
            let tracked = Tracked::testing(id, tuple);
            let cookie = of_tracked(&tracked, &ends(5000));
            assert!(is_tracked(cookie), "{cookie:#x}");
            assert_eq!(Name::new(&KEY, cookie).cookie(&KEY), cookie);
            // Another with the same number.
            assert_ne!(of_tracked(&tracked, &ends(5001)), cookie);
        }
    }

    #[test]
    fn ends_are_of_one_family() {
        let tuple = |source: &str, destination: &str| Tuple {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        };
        assert!(ends(&tuple("192.0.2.1:1", "192.0.2.2:2")).is_some());
        assert!(ends(&tuple("[::ffff:192.0.2.1]:1", "192.0.2.2:2")).is_some());
        assert!(ends(&tuple("[2001:db8::1]:1", "[2001:db8::2]:2")).is_some());
        assert!(ends(&tuple("[2001:db8::1]:1", "192.0.2.2:2")).is_none());
    }
}
