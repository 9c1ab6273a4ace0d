//! DNS cookies as a server makes them (RFC 9018), and queries that carry them.

use std::net::IpAddr;

use limiter_common::{
    address::Address,
    cookie::{DnsCookie, Secret},
};

/// The length of both cookies.
pub const DNS_COOKIE_LENGTH: usize = 24;

/// A query of `example.com` for its address, with an option before the cookie.
const BEFORE: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\
    \x07example\x03com\0\0\x01\0\x01\
    \0\0\x29\x04\xd0\0\0\x80\0\0\x20\0\x03\0\0\0\x0a\0\x18";

/// Returns the cookies of a client and of the server with the secret, issued at that Unix time in seconds.
#[must_use]
pub fn dns_cookie(secret: &Secret, client: IpAddr, issued: u32) -> [u8; DNS_COOKIE_LENGTH] {
    let mut cookie = DnsCookie {
        client: 0x0102_0304_0506_0708,
        head: u64::from(issued.swap_bytes()) << 32 | 1,
        hash: 0,
    };
    cookie.hash = cookie.hash_by(secret, &Address::from(client));
    let mut bytes = [0; DNS_COOKIE_LENGTH];
    let parts = [cookie.client, cookie.head, cookie.hash];
    for (chunk, part) in bytes.chunks_exact_mut(8).zip(parts) {
        chunk.copy_from_slice(&part.to_le_bytes());
    }
    bytes
}

/// Returns a DNS query that ends with such cookies.
#[must_use]
pub fn dns_cookie_query(cookie: &[u8; DNS_COOKIE_LENGTH]) -> Vec<u8> {
    [BEFORE, cookie].concat()
}
