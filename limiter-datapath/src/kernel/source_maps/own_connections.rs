//! The map of the TCP connections that the host itself began. Only the kernel's program changes it.

use aya::maps::{HashMap, IterableMap as _, Map, MapData};
use limiter_common::{address::Address, connection::Ends, policy::Features};

use crate::kernel::{DatapathError, hash, map::error, pod::InMap};

pub(in crate::kernel) const OWN_CONNECTIONS: &str = "OWN_CONNECTIONS";

/// The maximum number of recorded connections under a policy that exempts them.
const CAPACITY: u32 = 1 << 16;

/// The number of connections that a policy with these features records; 0: none.
pub(in crate::kernel) const fn capacity(features: &Features) -> u32 {
    if features.own_connections == 0 {
        0
    } else {
        CAPACITY
    }
}

/// Holds the connections that the host began, from before their first segment to their end.
pub struct OwnConnectionMap(HashMap<MapData, InMap<Ends>, InMap<u64>>);

impl OwnConnectionMap {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let connections = open(OWN_CONNECTIONS)?;
        let connections = connections.try_into();
        Ok(Self(connections.map_err(error(OWN_CONNECTIONS))?))
    }

    pub(in crate::kernel) fn map(&self) -> (&'static str, &MapData) {
        (OWN_CONNECTIONS, self.0.map())
    }

    /// The number of recorded connections to a peer, not at one moment. Reads the whole map.
    pub fn count_to(&self, peer: &Address) -> Result<usize, DatapathError> {
        let (mut count, mut some, mut position) = (0, Vec::new(), None);
        loop {
            let read = hash::read_some(&self.0, position, &mut some);
            position = read.map_err(error(OWN_CONNECTIONS))?;
            let ends = some.drain(..).map(|(ends, _): (Ends, u64)| ends);
            count += ends.filter(|ends| ends.peer() == *peer).count();
            if position.is_none() {
                return Ok(count);
            }
        }
    }

    /// Records a connection.
    #[cfg(feature = "testing")]
    pub fn add(&self, ends: Ends) -> Result<(), DatapathError> {
        let written = hash::write(&self.0, &[InMap(ends)], &[InMap(1)]);
        written.map_err(error(OWN_CONNECTIONS))
    }
}
