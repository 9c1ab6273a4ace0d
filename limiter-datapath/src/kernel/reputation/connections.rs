//! The maps of connections open at once. The kernel's programs change them; userspace only reads, and
//! orders changes.

use std::{cell::Cell, path::Path};

use aya::{
    EbpfLoader,
    maps::{Array, HashMap, IterableMap as _, Map, MapData},
};
use limiter_common::{
    connection::{self, Place, Places, SLOTS, Slots},
    policy::Shape,
};
use serde::{Deserialize, Serialize};

use super::queues::{self, QueueMaps, QueueSizes};
use crate::kernel::{
    DatapathError, hash,
    map::{again, error},
    pod::InMap,
};

pub(in crate::kernel) const CONNECTIONS: &str = "CONNECTIONS";
pub(in crate::kernel) const CONNECTION_COUNTS: &str = "CONNECTION_COUNTS";
pub(in crate::kernel) const UNCOUNTED: &str = "UNCOUNTED";

/// How many connections are counted at once under a policy that limits them.
const CAPACITY: u32 = 1 << 18;

/// The sizes of the maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSizes {
    /// The number of lines of counts; 0: the policy limits no connections.
    lines: u32,
    /// How many connections are noted.
    capacity: u32,
    /// The sizes of the maps of queues.
    queues: QueueSizes,
}

impl ConnectionSizes {
    /// Returns what a policy of that shape needs.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the number of lines fits")]
    pub const fn of(shape: &Shape) -> Self {
        let lines = shape.connection_lines as u32;
        Self {
            lines,
            capacity: if lines == 0 { 0 } else { CAPACITY },
            queues: QueueSizes::of(shape),
        }
    }
}

/// Reads the maps of connections.
pub struct ConnectionMaps {
    connections: HashMap<MapData, InMap<u64>, InMap<Places>>,
    counts: OpenCounts,
    uncounted: Array<MapData, u64>,
    queues: QueueMaps,
}

/// Reads how many connections are open at each place.
pub(super) struct OpenCounts {
    map: Array<MapData, [u64; SLOTS]>,
    /// The number of lines; 0: the policy limits no connections.
    lines: u32,
}

impl OpenCounts {
    fn new(map: Map, sizes: ConnectionSizes) -> Result<Self, DatapathError> {
        Ok(Self {
            map: map.try_into().map_err(error(CONNECTION_COUNTS))?,
            lines: sizes.lines,
        })
    }

    /// Returns the same by another descriptor.
    pub(super) fn again(&self) -> Result<Self, DatapathError> {
        let map = again(self.map.map()).map_err(error(CONNECTION_COUNTS))?;
        let sizes = ConnectionSizes {
            lines: self.lines,
            ..ConnectionSizes::default()
        };
        Self::new(map, sizes)
    }

    /// Returns how many connections are open at a place.
    pub(super) fn open(&self, place: Place) -> Result<u64, DatapathError> {
        if self.lines == 0 {
            return Ok(0);
        }
        Ok(connection::open(&self.line(place)?, place))
    }

    fn line(&self, place: Place) -> Result<Line, DatapathError> {
        let line = self.map.get(&place.line(self.lines), 0);
        let line = line.map_err(error(CONNECTION_COUNTS))?;
        Ok(Line(line.map(Cell::new)))
    }
}

impl ConnectionMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
        sizes: ConnectionSizes,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            connections: open(CONNECTIONS)?.try_into().map_err(error(CONNECTIONS))?,
            counts: OpenCounts::new(open(CONNECTION_COUNTS)?, sizes)?,
            uncounted: open(UNCOUNTED)?.try_into().map_err(error(UNCOUNTED))?,
            queues: QueueMaps::new(open)?,
        })
    }

    /// Returns the maps with their names.
    pub(super) fn maps(&self) -> impl Iterator<Item = (&'static str, &MapData)> {
        let counts = [
            (CONNECTIONS, self.connections.map()),
            (CONNECTION_COUNTS, self.counts.map.map()),
            (UNCOUNTED, self.uncounted.map()),
        ];
        counts.into_iter().chain(self.queues.maps())
    }

    /// Returns the queues in which clients wait.
    #[must_use]
    pub const fn queues(&self) -> &QueueMaps {
        &self.queues
    }

    /// Has a loader take these maps, by pinning them in a directory.
    pub(in crate::kernel) fn share(
        &self,
        loader: &mut EbpfLoader<'_>,
        directory: &Path,
    ) -> Result<(), DatapathError> {
        for (map, data) in self.maps() {
            let path = directory.join(map);
            let pinned = data.pin(&path);
            pinned.map_err(|source| DatapathError::Pin { map, source })?;
            loader.map_pin_path(map, path);
        }
        Ok(())
    }

    /// Returns the cookies of the sockets of all counted connections, with where they are counted;
    /// not at one moment.
    pub fn counted(&self) -> Result<Vec<(u64, Places)>, DatapathError> {
        hash::read(&self.connections).map_err(error(CONNECTIONS))
    }

    /// Returns how many connections are open at a place.
    pub fn open(&self, place: Place) -> Result<u64, DatapathError> {
        self.counts.open(place)
    }

    /// Returns the reader of how many are open.
    pub(super) const fn counts(&self) -> &OpenCounts {
        &self.counts
    }

    /// Counts a connection at a place.
    #[cfg(feature = "testing")]
    pub fn add(&mut self, place: Place) -> Result<(), DatapathError> {
        self.change(place, connection::add)
    }

    /// Takes a connection off a place.
    #[cfg(feature = "testing")]
    pub fn take_off(&mut self, place: Place) -> Result<(), DatapathError> {
        self.change(place, connection::take_off)
    }

    #[cfg(feature = "testing")]
    fn change(
        &mut self,
        place: Place,
        change: fn(&Line, Place) -> bool,
    ) -> Result<(), DatapathError> {
        let line = self.counts.line(place)?;
        change(&line, place);
        let index = place.line(self.counts.lines);
        let line = line.0.map(Cell::into_inner);
        let set = self.counts.map.set(index, line, 0);
        set.map_err(error(CONNECTION_COUNTS))
    }

    /// Returns how many connections a limit did not count for want of room.
    pub fn uncounted(&self) -> Result<u64, DatapathError> {
        self.uncounted.get(&0, 0).map_err(error(UNCOUNTED))
    }
}

/// A copy of a line.
struct Line([Cell<u64>; SLOTS]);

impl Slots for Line {
    fn get(&self, slot: usize) -> u64 {
        self.0[slot].get()
    }

    fn compare_and_swap(&self, slot: usize, seen: u64, wanted: u64) -> bool {
        let holds = self.get(slot) == seen;
        if holds {
            self.0[slot].set(wanted);
        }
        holds
    }
}

/// Returns how many entries the named map has; `None`: it is none of these, or its size is fixed.
pub(super) fn entries(map: &str, sizes: ConnectionSizes) -> Option<u32> {
    match map {
        CONNECTIONS => Some(sizes.capacity),
        CONNECTION_COUNTS => Some(sizes.lines),
        _ => queues::entries(map, sizes.queues),
    }
}

/// Has a loader make the maps in these sizes.
pub(super) fn size(loader: &mut EbpfLoader<'_>, sizes: ConnectionSizes) {
    loader
        .map_max_entries(CONNECTIONS, sizes.capacity.max(1))
        .map_max_entries(CONNECTION_COUNTS, sizes.lines.max(1));
    queues::size(loader, sizes.queues);
}
