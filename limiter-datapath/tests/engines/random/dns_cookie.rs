//! DNS queries with cookies.

use std::net::IpAddr;

use limiter_common::cookie::{CookieKeys, Secret};
use testbed::{DNS_COOKIE_LENGTH, dns_cookie, dns_cookie_query};

use crate::engine::START;

/// The start of the tests, in seconds of Unix time.
const BEGIN: u64 = 1_790_000_000;

/// The distance of the cookie's length field from the query's end.
pub(crate) const COOKIE_LENGTH_BEFORE_END: usize = DNS_COOKIE_LENGTH + 1;

/// A secret made of that number.
pub(crate) fn secret(number: u8) -> Secret {
    Secret::new([number; 16]).expect("it is not 0")
}

/// The keys that check cookies.
pub(crate) fn cookie_keys(secrets: &[Secret]) -> CookieKeys {
    CookieKeys::new(secrets, BEGIN * 1_000_000_000 - START)
}

/// A query with a cookie of a client, made with a secret `age` seconds before the test begins.
pub(crate) fn cookie_query(client: IpAddr, secret: &Secret, age: i64) -> Vec<u8> {
    let issued = BEGIN.checked_add_signed(-age).expect("a time");
    let issued = u32::try_from(issued).expect("32 bits");
    dns_cookie_query(&dns_cookie(secret, client, issued))
}
