//! The maps of open connections. The kernel's programs change them; userspace only reads, and orders
//! changes.

#[cfg(feature = "testing")]
mod testing;

use std::iter;

use aya::maps::{Array, IterableMap as _, Map, MapData};
use limiter_common::{
    connection::{
        CountId, MOST_LIMITS,
        count::{self, LINES},
        entry::{ENTRY_LINES, cookie_of, limit_of},
        line::{SLOTS, Slots, word_at},
    },
    policy::Features,
    table::{self, AtomicLine, HashKey},
};
use serde::{Deserialize, Serialize};

use super::queues::{self, QueueMaps, QueueSizes};
use crate::kernel::{
    DatapathError,
    map::{again, error},
    mapped_array::MappedArray,
};

pub(in crate::kernel) const CONNECTIONS: &str = "CONNECTIONS";
pub(in crate::kernel) const CONNECTION_COUNTS: &str = "CONNECTION_COUNTS";
pub(in crate::kernel) const UNCOUNTED: &str = "UNCOUNTED";
pub(in crate::kernel) const FULL_AT: &str = "FULL_AT";

/// The sizes of the maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSizes {
    /// The number of lines of counts; 0: the policy limits no connections.
    lines: u32,
    /// The number of lines of entries.
    entry_lines: u32,
    /// The sizes of the maps of queues.
    queues: QueueSizes,
}

impl ConnectionSizes {
    /// The sizes for a policy with these features.
    #[must_use]
    pub const fn of(features: &Features) -> Self {
        let (lines, entry_lines) = if features.connections == 0 {
            (0, 0)
        } else {
            (LINES, ENTRY_LINES)
        };
        Self {
            lines,
            entry_lines,
            queues: QueueSizes::of(features),
        }
    }
}

/// Reads the maps of connections.
pub struct ConnectionMaps {
    /// An entry for each counted connection, mapped read-only.
    entries: MappedArray<AtomicLine>,
    hash_key: HashKey,
    counts: OpenCounts,
    uncounted: Array<MapData, u64>,
    /// The last time a key had no room, by the monotonic clock. Only kernel programs read it.
    full_at: Array<MapData, u64>,
    queues: QueueMaps,
}

/// Reads the number of open connections under each count id.
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

    /// The same reader by another descriptor.
    pub(super) fn again(&self) -> Result<Self, DatapathError> {
        let map = again(self.map.map()).map_err(error(CONNECTION_COUNTS))?;
        let sizes = ConnectionSizes {
            lines: self.lines,
            ..ConnectionSizes::default()
        };
        Self::new(map, sizes)
    }

    pub(super) fn open(&self, count_id: CountId) -> Result<u64, DatapathError> {
        if self.lines == 0 {
            return Ok(0);
        }
        let mut open = 0;
        for line in count_id.lines() {
            open += count::open_in(&self.line(line)?, count_id);
        }
        Ok(open)
    }

    fn line(&self, line: u32) -> Result<Line, DatapathError> {
        let line = self.map.get(&line, 0);
        line.map(Line).map_err(error(CONNECTION_COUNTS))
    }
}

impl ConnectionMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
        sizes: ConnectionSizes,
        hash_key: HashKey,
    ) -> Result<Self, DatapathError> {
        let entries = open(CONNECTIONS)?.try_into().map_err(error(CONNECTIONS))?;
        Ok(Self {
            entries: MappedArray::read_only(entries)?,
            hash_key,
            counts: OpenCounts::new(open(CONNECTION_COUNTS)?, sizes)?,
            uncounted: open(UNCOUNTED)?.try_into().map_err(error(UNCOUNTED))?,
            full_at: open(FULL_AT)?.try_into().map_err(error(FULL_AT))?,
            queues: QueueMaps::new(open)?,
        })
    }

    pub(in crate::kernel) fn maps(&self) -> impl Iterator<Item = (&'static str, &MapData)> {
        let counts = [
            (CONNECTIONS, self.entries.map()),
            (CONNECTION_COUNTS, self.counts.map.map()),
            (UNCOUNTED, self.uncounted.map()),
            (FULL_AT, self.full_at.map()),
        ];
        counts.into_iter().chain(self.queues.maps())
    }

    /// The queues of clients.
    #[must_use]
    pub const fn queues(&self) -> &QueueMaps {
        &self.queues
    }

    /// The socket cookies of all counted connections, in ascending order; not at one moment.
    #[must_use]
    pub fn counted(&self) -> Vec<u64> {
        let mut cookies = Vec::new();
        for (line, words) in self.occupied() {
            let words = (0..).zip(words.words());
            cookies.extend(
                words.filter_map(|(slot, word)| {
                    cookie_of(&self.hash_key, word_at(line, slot), word)
                }),
            );
        }
        // Each limit that counts a connection has its own entry of it.
        cookies.sort_unstable();
        cookies.dedup();
        cookies
    }

    fn occupied(&self) -> impl Iterator<Item = (u32, &AtomicLine)> {
        let lines = self.entries.all();
        let first = table::next_occupied(lines, 0);
        iter::successors(first, |(index, _)| table::next_occupied(lines, index + 1))
    }

    /// The number of connections that each limit counts, in the order of the policy's limits on
    /// connections; not at one moment.
    #[must_use]
    pub fn open_by_limit(&self) -> [u64; MOST_LIMITS] {
        let mut open = [0; MOST_LIMITS];
        let words = self.occupied().flat_map(|(_, line)| line.words());
        for limit in words.filter_map(limit_of) {
            open[limit as usize] += 1;
        }
        open
    }

    /// The number of open connections under a count id.
    pub fn open(&self, count_id: CountId) -> Result<u64, DatapathError> {
        self.counts.open(count_id)
    }

    pub(super) const fn counts(&self) -> &OpenCounts {
        &self.counts
    }

    /// The number of connections that a limit did not count for want of room.
    pub fn uncounted(&self) -> Result<u64, DatapathError> {
        self.uncounted.get(&0, 0).map_err(error(UNCOUNTED))
    }
}

struct Line([u64; SLOTS]);

impl Slots for Line {
    fn get(&self, slot: usize) -> u64 {
        self.0[slot]
    }
}

/// The number of entries of the named map; `None`: the map is not one of these, or its size is fixed.
pub(super) fn entries(map: &str, sizes: ConnectionSizes) -> Option<u32> {
    match map {
        CONNECTIONS => Some(sizes.entry_lines),
        CONNECTION_COUNTS => Some(sizes.lines),
        _ => queues::entries(map, sizes.queues),
    }
}
