//! The examples of RFC 9018, appendix A, and the bounds of a cookie's age.

extern crate std;

use core::net::IpAddr;
use std::{string::String, vec::Vec};

use super::*;

const SECOND: u64 = 1_000_000_000;

/// The secret of appendix A.1 to A.3, and A.4's secrets before and after the roll-over.
const SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
const OLD: &str = "dd3bdf9344b678b185a6f5cb60fca715";
const NEW: &str = "445536bcd2513298075a5d379663c962";

/// A client, its cookie, and the time of the cookie's issue: A.1, A.2, A.3's query and response.
const OF_SECRET: [(&str, &str, u64); 4] = [
    (
        "198.51.100.100",
        "2464c4abcf10c957010000005cf79f111f8130c3eee29480",
        1_559_731_985,
    ),
    (
        "198.51.100.100",
        "2464c4abcf10c957010000005cf7a871d4a564a1442aca77",
        1_559_734_385,
    ),
    (
        "203.0.113.203",
        "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5",
        1_559_727_985,
    ),
    (
        "203.0.113.203",
        "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e",
        1_559_734_700,
    ),
];

/// A.4: an IPv6 client with a cookie by the old secret, and its new cookie by the new secret.
const CLIENT_V6: &str = "2001:db8:220:1:59de:d0f4:8769:82b8";
const BY_OLD: (&str, u64) = (
    "22681ab97d52c298010000005cf7c57926556bd0934c72f8",
    1_559_741_817,
);
const BY_NEW: (&str, u64) = (
    "22681ab97d52c298010000005cf7c609a6bb79d16625507a",
    1_559_741_961,
);

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| String::from_utf8(pair.to_vec()).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(&pair, 16).unwrap())
        .collect()
}

fn secret(hex: &str) -> Secret {
    Secret::new(bytes(hex).try_into().unwrap()).unwrap()
}

fn cookie(hex: &str) -> DnsCookie {
    let bytes = bytes(hex);
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    DnsCookie {
        client: number(0),
        head: number(8),
        hash: number(16),
    }
}

fn client(address: &str) -> Address {
    address.parse::<IpAddr>().unwrap().into()
}

/// Checks at a Unix time in seconds; the clock began at another time.
fn check(cookie: &DnsCookie, address: &str, secrets: &[&str], at: u64) -> CookieCheck {
    const BOOTED: u64 = 1_559_000_000 * SECOND;
    let secrets: Vec<_> = secrets.iter().map(|hex| secret(hex)).collect();
    let keys = CookieKeys::new(&secrets, BOOTED);
    let now_ns = (at * SECOND).wrapping_sub(BOOTED);
    cookie.check(&client(address), &keys, now_ns)
}

#[test]
fn the_examples_of_the_standard_are_valid() {
    for (address, hex, issued) in OF_SECRET {
        let cookie = cookie(hex);
        assert_eq!(
            check(&cookie, address, &[SECRET], issued),
            CookieCheck::Valid
        );
        assert_eq!(
            cookie.hash_by(&secret(SECRET), &client(address)),
            cookie.hash
        );
        for (others, client) in [
            (&[NEW, OLD][..], address),
            (&[], address),
            (&[SECRET], "198.51.100.101"),
            (&[SECRET], CLIENT_V6),
        ] {
            assert_eq!(check(&cookie, client, others, issued), CookieCheck::Wrong);
        }
    }
}

#[test]
fn a_roll_over_keeps_cookies_valid() {
    for (hex, issued) in [BY_OLD, BY_NEW] {
        let cookie = cookie(hex);
        for secrets in [&[OLD, NEW][..], &[NEW, OLD], &[SECRET, NEW, OLD]] {
            let checked = check(&cookie, CLIENT_V6, secrets, issued);
            assert_eq!(checked, CookieCheck::Valid, "{secrets:?}");
        }
    }
    let (old, issued) = BY_OLD;
    assert_eq!(
        check(&cookie(old), CLIENT_V6, &[NEW], issued),
        CookieCheck::Wrong
    );
    // The client is the whole address, not its network.
    let neighbour = "2001:db8:220:1:59de:d0f4:8769:82b9";
    assert_eq!(
        check(&cookie(old), neighbour, &[OLD], issued),
        CookieCheck::Wrong
    );
}

#[test]
fn a_cookie_is_valid_for_an_hour() {
    let (address, hex, issued) = OF_SECRET[0];
    let cookie = cookie(hex);
    for (at, expected) in [
        (issued + 3_600, CookieCheck::Valid),
        (issued + 3_601, CookieCheck::Stale),
        (issued - 300, CookieCheck::Valid),
        (issued - 301, CookieCheck::Future),
        // Beyond 2106, and before it was issued by more than half of the numbers.
        (issued + (1 << 32), CookieCheck::Valid),
        (issued + (1 << 31) - 1, CookieCheck::Stale),
        (issued + (1 << 31), CookieCheck::Future),
    ] {
        assert_eq!(check(&cookie, address, &[SECRET], at), expected, "{at}");
    }
}

#[test]
fn other_versions_are_malformed() {
    let (address, hex, issued) = OF_SECRET[0];
    for version in [0, 2, 255] {
        let mut cookie = cookie(hex);
        cookie.head = cookie.head & !0xff | version;
        cookie.hash = cookie.hash_by(&secret(SECRET), &client(address));
        let checked = check(&cookie, address, &[SECRET], issued);
        assert_eq!(checked, CookieCheck::Malformed);
    }
}

#[test]
fn zeros_are_no_secret() {
    assert_eq!(Secret::new([0; 16]), None);
    let mut cookie = cookie(OF_SECRET[0].1);
    cookie.hash = cookie.hash_by(&Secret::NONE, &client("192.0.2.1"));
    let checked = check(&cookie, "192.0.2.1", &[], OF_SECRET[0].2);
    assert_eq!(checked, CookieCheck::Wrong);
}

#[test]
fn nobody_prints_a_secret() {
    let shown = std::format!("{:?}", CookieKeys::new(&[secret(SECRET)], 7));
    for half in [secret(SECRET).first, secret(SECRET).second] {
        assert!(!shown.contains(&std::format!("{half}")), "{shown}");
        assert!(!shown.contains(&std::format!("{half:x}")), "{shown}");
    }
}
