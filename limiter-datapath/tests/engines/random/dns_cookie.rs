//! DNS queries with cookies.

use std::net::IpAddr;

use limiter_common::cookie::{CookieKeys, Secret};
use testbed::{DNS_COOKIE_LENGTH, dns_cookie, dns_cookie_query};

use crate::engine::START;

/// When the tests begin, in seconds of Unix time.
const BEGIN: u64 = 1_790_000_000;

/// How far before a query's end the length of its cookie is.
pub(crate) const COOKIE_LENGTH_BEFORE_END: usize = DNS_COOKIE_LENGTH + 1;

/// Returns a secret that has that number.
pub(crate) fn secret(number: u8) -> Secret {
    Secret::new([number; 16]).expect("it is not 0")
}

/// Returns what cookies are checked with.
pub(crate) fn cookie_keys(secrets: &[Secret]) -> CookieKeys {
    CookieKeys::new(secrets, BEGIN * 1_000_000_000 - START)
}

/// Returns a query with a cookie of a client that was made with a secret `age` seconds before the
/// test begins.
pub(crate) fn cookie_query(client: IpAddr, secret: &Secret, age: i64) -> Vec<u8> {
    let issued = BEGIN.checked_add_signed(-age).expect("a time");
    let issued = u32::try_from(issued).expect("32 bits");
    dns_cookie_query(&dns_cookie(secret, client, issued))
}
