//! The host's own addresses in memory.

use std::{collections::BTreeSet, net::IpAddr};

use limiter_common::{
    address::Address,
    answer::{OwnAddress, OwnAddresses},
};

/// All addresses of a host; by default it has none.
#[derive(Debug)]
pub struct MemoryOwnAddresses(BTreeSet<OwnAddress>);

impl Default for MemoryOwnAddresses {
    fn default() -> Self {
        [].into_iter().collect()
    }
}

impl FromIterator<IpAddr> for MemoryOwnAddresses {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(addresses: I) -> Self {
        let addresses = addresses.into_iter();
        let addresses = addresses.map(|address| Address::from(address).into());
        Self(addresses.chain([OwnAddress::COMPLETE]).collect())
    }
}

impl OwnAddresses for MemoryOwnAddresses {
    fn has(&self, element: &OwnAddress) -> bool {
        self.0.contains(element)
    }
}
