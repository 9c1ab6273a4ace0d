//! The map of known names. Only the kernel's programs change it.

use aya::maps::{Map, MapData};
use limiter_common::{known_names::NameLine, policy::Shape};

use crate::kernel::{DatapathError, map::error, mapped_array::MappedArray, monotonic_now};

pub(in crate::kernel) const KNOWN_NAMES: &str = "KNOWN_NAMES";

/// The number of lines of the map under a policy of that shape; 0: the map is not used.
pub(in crate::kernel) fn lines(shape: &Shape) -> u32 {
    u32::try_from(shape.name_lines).unwrap_or(u32::MAX)
}

/// Reads the hashes of the names in recent queries.
pub struct KnownNameMap(MappedArray<NameLine>);

impl KnownNameMap {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let lines = open(KNOWN_NAMES)?.try_into();
        let lines = lines.map_err(error(KNOWN_NAMES))?;
        Ok(Self(MappedArray::read_only(lines)?))
    }

    pub(super) fn map(&self) -> (&'static str, &MapData) {
        (KNOWN_NAMES, self.0.map())
    }

    /// The number of known names, if names stay known for `known_for_ns` nanoseconds; not at one
    /// moment.
    #[must_use]
    pub fn count(&self, known_for_ns: u64) -> usize {
        let now_ns = monotonic_now();
        let lines = self.0.all().iter();
        lines.map(|line| line.count(known_for_ns, now_ns)).sum()
    }
}
