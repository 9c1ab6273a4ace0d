//! The map of the host's own addresses. Packets from them get no answer.

use std::{collections::BTreeSet, net::IpAddr};

use aya::maps::{HashMap, IterableMap as _, Map, MapData};
use limiter_common::{
    address::Address,
    answer::{MAX_OWN_ADDRESSES, OwnAddress},
};

use crate::kernel::{DatapathError, hash, map::error, pod::InMap};

pub(in crate::kernel) const OWN_ADDRESSES: &str = "OWN_ADDRESSES";

/// Sets the host's own addresses. Until then, no packet gets an answer. Only one thread of one
/// process may set them at a time; packets read meanwhile.
pub struct OwnAddressMap(HashMap<MapData, InMap<OwnAddress>, InMap<u64>>);

impl OwnAddressMap {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let addresses = open(OWN_ADDRESSES)?;
        Ok(Self(addresses.try_into().map_err(error(OWN_ADDRESSES))?))
    }

    pub(super) fn map(&self) -> (&'static str, &MapData) {
        (OWN_ADDRESSES, self.0.map())
    }

    /// Replaces the addresses. With more than [`MAX_OWN_ADDRESSES`] it fails, and changes nothing.
    pub fn set(&self, addresses: &BTreeSet<IpAddr>) -> Result<(), DatapathError> {
        if addresses.len() > MAX_OWN_ADDRESSES as usize {
            return Err(DatapathError::TooManyOwnAddresses(addresses.len()));
        }
        let addresses = addresses.iter();
        let wanted = addresses.map(|address| OwnAddress::from(Address::from(*address)));
        let wanted: BTreeSet<_> = wanted.chain([OwnAddress::COMPLETE]).collect();
        let present = hash::read(&self.0).map_err(error(OWN_ADDRESSES))?;
        let present: BTreeSet<_> = present.into_iter().map(|(element, _)| element).collect();
        // Remove first, to make room.
        for gone in present.difference(&wanted) {
            self.remove(*gone)?;
        }
        // The mark of completeness is the least element, so in this order it is written last.
        let missing = wanted.iter().rev();
        for new in missing.filter(|element| !present.contains(element)) {
            hash::write(&self.0, &[InMap(*new)], &[InMap(1)]).map_err(error(OWN_ADDRESSES))?;
        }
        Ok(())
    }

    /// The addresses in their order, as last set.
    pub fn get(&self) -> Result<Vec<IpAddr>, DatapathError> {
        let present = hash::read(&self.0).map_err(error(OWN_ADDRESSES))?;
        let present: BTreeSet<_> = present.into_iter().map(|(element, _)| element).collect();
        let addresses = present.iter().filter_map(OwnAddress::address);
        Ok(addresses.map(IpAddr::from).collect())
    }

    /// Stops all answers until the addresses are set again.
    pub fn forget(&self) -> Result<(), DatapathError> {
        self.remove(OwnAddress::COMPLETE)
    }

    fn remove(&self, element: OwnAddress) -> Result<(), DatapathError> {
        let removed = hash::remove(&self.0, element);
        removed.map(drop).map_err(error(OWN_ADDRESSES))
    }
}
