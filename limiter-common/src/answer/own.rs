//! The host's own addresses, which get no answers: a packet with one of them as its source is forged, so no
//! client waits.

use crate::address::{Address, Family};

/// The most own addresses in the set. If there are more, nothing is answered.
pub const MAX_OWN_ADDRESSES: u32 = 1024;

/// An address in the set of the host's own, or the mark of a [complete set](Self::COMPLETE).
///
/// Every byte is defined and there is no padding: the kernel hashes the key as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct OwnAddress {
    /// The IP version; 0 in the mark.
    family: u64,
    high: u64,
    low: u64,
}

impl OwnAddress {
    /// The mark in a set with all of the host's addresses. Without it any address might be the host's own.
    pub const COMPLETE: Self = Self {
        family: 0,
        high: 0,
        low: 0,
    };

    /// The address; `None` for the mark.
    #[must_use]
    pub fn address(&self) -> Option<Address> {
        let family = [Family::V4, Family::V6]
            .into_iter()
            .find(|family| self.family == *family as u64)?;
        Some(Address {
            family,
            high: self.high,
            low: self.low,
        })
    }
}

impl From<Address> for OwnAddress {
    #[inline(always)]
    fn from(address: Address) -> Self {
        let Address { family, high, low } = address;
        Self {
            family: family as u64,
            high,
            low,
        }
    }
}

/// A set of the host's own addresses.
pub trait OwnAddresses {
    /// Whether the set has an element.
    fn has(&self, element: &OwnAddress) -> bool;
}

/// Whether an address may be one of the host's own: it is, or the set is incomplete.
#[inline(always)]
pub fn may_be_own<O: OwnAddresses>(own: &O, address: &Address) -> bool {
    !own.has(&OwnAddress::COMPLETE) || own.has(&OwnAddress::from(*address))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl OwnAddresses for &[OwnAddress] {
        fn has(&self, element: &OwnAddress) -> bool {
            self.contains(element)
        }
    }

    #[test]
    fn only_a_complete_set_tells_who_is_somebody_else() {
        let v4 = Address::v4([192, 0, 2, 1]);
        let same_bits = Address::v6([192, 0, 2, 1, 0, 0, 0, 0], [0; 8]);
        let complete = [OwnAddress::COMPLETE, v4.into()];
        assert!(may_be_own(&&complete[..], &v4));
        assert!(!may_be_own(&&complete[..], &same_bits));
        assert!(!may_be_own(&&complete[..1], &v4));
        // The state before the daemon has filled the set.
        assert!(may_be_own(&&complete[1..], &same_bits));
        assert!(may_be_own(&&complete[..0], &v4));
    }
}
