//! The numbers under which connections are counted: the cookie of a socket, or a made-up one for a tracked
//! connection, which has no socket here.

use limiter_common::{
    address::{Address, Family},
    connection::Ends,
    table::HashKey,
};

use limiter_host::netlink::conntrack::{TrackedConnection, Tuple};

/// The highest bit of a tracked connection's cookie. The kernel numbers sockets from 1 upwards and from -1 downwards,
/// so no socket's cookie gets near it.
const MARK: u64 = 1 << MARK_BIT;
const MARK_BIT: u32 = 54;

/// The bits below the kernel's id of a tracked connection hold a hash of its ends. The id is a keyed hash of only 32
/// bits: among a million connections some share one.
const ENDS_BITS: u32 = MARK_BIT - u32::BITS;

/// Not secret, and the same in each daemon, so that the next daemon recognises connections counted by this one.
const KEY: HashKey = HashKey {
    first: 0x6e66_5f63_6f6e_6e74,
    second: 0x7261_636b_2d65_6e64,
};

pub(super) const OF_NONE: u64 = 0;

/// Returns the cookie of a tracked connection; `ends` are the ends of its packets.
pub(super) const fn of_tracked(tracked: &TrackedConnection, ends: &Ends) -> u64 {
    let hash = ends.hash(&KEY) & ((1 << ENDS_BITS) - 1);
    MARK | (tracked.id as u64) << ENDS_BITS | hash
}

pub(super) const fn is_tracked(cookie: u64) -> bool {
    cookie >> MARK_BIT == 1
}

/// Returns the ends of a connection, from the addresses and ports of its incoming packets; `None`: they are of two
/// families.
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
    use limiter_common::connection::entry::Name;

    use super::*;

    #[test]
    fn a_cookie_of_our_own_is_none_of_a_socket_and_survives_its_note() {
        // Sockets are numbered from 1 upwards and from -1 downwards.
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
            let tracked = TrackedConnection::testing(id, tuple);
            let cookie = of_tracked(&tracked, &ends(5000));
            assert!(is_tracked(cookie), "{cookie:#x}");
            assert_eq!(Name::new(&KEY, cookie).cookie(&KEY), cookie);
            // A connection with the same id and other ends.
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
