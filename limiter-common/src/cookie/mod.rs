//! DNS cookies (RFC 7873, RFC 9018): a client with a valid server cookie got it in an earlier response from a
//! server with the same secret, so its return path works.
//!
//! The server issues cookies; limiter only checks them. A cookie is bound to the client's whole address,
//! and valid for an hour.

mod keys;

pub use self::keys::{CookieKeys, MAX_SECRETS, Secret};
use crate::{
    address::{Address, Family},
    numbered::numbered,
    siphash::SipHash,
};

/// The content of an option `COOKIE` with both cookies; each number is eight of its bytes, little
/// endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DnsCookie {
    /// The client cookie.
    pub client: u64,
    /// The version of the server cookie, three reserved bytes, and the time of its issue.
    pub head: u64,
    /// Its hash.
    pub hash: u64,
}

numbered! {
    /// The result of checking a query's cookie. Kernel maps contain counters in this order.
    pub enum CookieCheck {
        /// It has no server cookie.
        Absent,
        /// Its option or its cookie does not follow RFC 9018.
        Malformed,
        /// The cookie was issued more than an hour ago.
        Stale,
        /// The cookie's time is more than five minutes ahead.
        Future,
        /// The cookie was made with another secret or for another client.
        Wrong,
        /// The cookie is valid.
        Valid,
    } else Absent
}

impl CookieCheck {
    /// The number of variants.
    pub const COUNT: usize = 6;

    /// Every variant, in the order of its number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Absent,
        Self::Malformed,
        Self::Stale,
        Self::Future,
        Self::Wrong,
        Self::Valid,
    ];

    /// The name in metrics, JSON and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Malformed => "malformed",
            Self::Stale => "stale",
            Self::Future => "future",
            Self::Wrong => "wrong",
            Self::Valid => "valid",
        }
    }
}

/// The version of server cookies (RFC 9018, section 4.1).
const VERSION: u64 = 1;

/// The time for which a cookie is valid, and the limit on how far ahead its time may be, in seconds (RFC
/// 9018, section 4.3).
const VALID_FOR: i32 = 3600;
const VALID_BEFORE: i32 = 300;

impl DnsCookie {
    /// Checks the cookie of a client at a time of the decisions' clock, in nanoseconds.
    #[must_use]
    #[inline(always)]
    pub fn check(&self, client: &Address, keys: &CookieKeys, now_ns: u64) -> CookieCheck {
        if self.head & 0xff != VERSION {
            return CookieCheck::Malformed;
        }
        // Serial numbers (RFC 1982), so that cookies outlive 2106.
        let age = keys.unix_seconds(now_ns).wrapping_sub(self.issued());
        let age = age.cast_signed();
        if age > VALID_FOR {
            return CookieCheck::Stale;
        }
        if age < -VALID_BEFORE {
            return CookieCheck::Future;
        }
        for secret in &keys.secrets {
            if secret.is_set() && self.hash_by(secret, client) == self.hash {
                return CookieCheck::Valid;
            }
        }
        CookieCheck::Wrong
    }

    /// Returns the time of the cookie's issue, in seconds of Unix time modulo 2^32.
    #[inline(always)]
    const fn issued(&self) -> u32 {
        ((self.head >> 32) as u32).swap_bytes()
    }

    /// Returns the hash of a cookie by a secret, for a client (RFC 9018, section 4.4).
    #[must_use]
    #[inline(always)]
    pub const fn hash_by(&self, secret: &Secret, client: &Address) -> u64 {
        const IPV4_LENGTH: u64 = 8 + 8 + 4;
        const IPV6_LENGTH: u64 = 8 + 8 + 16;
        let mut hash = SipHash::<2, 4>::new(secret.first, secret.second);
        hash.absorb(self.client);
        hash.absorb(self.head);
        match client.family {
            Family::V4 => hash.absorb(IPV4_LENGTH << 56 | client.high.swap_bytes()),
            Family::V6 => {
                hash.absorb(client.high.swap_bytes());
                hash.absorb(client.low.swap_bytes());
                hash.absorb(IPV6_LENGTH << 56);
            }
        }
        hash.finish()
    }
}

#[cfg(test)]
mod tests;
