//! The inputs for checking cookies: the secrets, and the wall clock.

use core::fmt;

/// The most secrets at a time: the active one, and one before and one after a roll-over.
pub const MAX_SECRETS: usize = 3;

/// A server secret of 128 bits; each half is eight of its bytes, little endian. Nothing shows it, not even
/// debug output.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Secret {
    pub(super) first: u64,
    pub(super) second: u64,
}

impl Secret {
    /// Stands in for a missing secret.
    pub const NONE: Self = Self {
        first: 0,
        second: 0,
    };

    /// Makes a secret of its bytes, or `None` if all are 0: no secret is.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        let number = u128::from_le_bytes(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let secret = Self {
            first: number as u64,
            second: (number >> 64) as u64,
        };
        secret.is_set().then_some(secret)
    }

    #[inline(always)]
    pub(super) const fn is_set(&self) -> bool {
        self.first | self.second != 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// The inputs for checking cookies.
///
/// It consists of plain numbers, because the kernel's program has it in a map. A reader during a
/// replacement may see a secret that is half old and half new: it makes no cookie valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CookieKeys {
    /// The lead of Unix time over the decisions' clock, in nanoseconds modulo 2^64.
    pub unix_ahead_ns: u64,
    /// The secrets; any of them makes a cookie valid.
    pub secrets: [Secret; MAX_SECRETS],
}

impl CookieKeys {
    /// No secret: no cookie is valid.
    pub const NONE: Self = Self {
        unix_ahead_ns: 0,
        secrets: [Secret::NONE; MAX_SECRETS],
    };

    /// Makes keys of up to [`MAX_SECRETS`] secrets; further ones are left out.
    #[must_use]
    pub fn new(secrets: &[Secret], unix_ahead_ns: u64) -> Self {
        let mut keys = Self {
            unix_ahead_ns,
            ..Self::NONE
        };
        for (entry, secret) in keys.secrets.iter_mut().zip(secrets) {
            *entry = *secret;
        }
        keys
    }

    /// Returns the Unix time at a time of the decisions' clock, in seconds modulo 2^32.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
    pub(super) const fn unix_seconds(&self, now_ns: u64) -> u32 {
        (now_ns.wrapping_add(self.unix_ahead_ns) / 1_000_000_000) as u32
    }
}
