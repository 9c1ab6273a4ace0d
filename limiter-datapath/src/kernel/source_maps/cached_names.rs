//! The map of cached names. Only the kernel's programs change it.

use aya::maps::{Map, MapData};
use limiter_common::{cached_names::NameLine, policy::Features};

use crate::kernel::{DatapathError, map::error, mapped_array::MappedArray, monotonic_now};

pub(in crate::kernel) const KNOWN_NAMES: &str = "KNOWN_NAMES";

/// The number of lines of the map under a policy with these features; 0: the map is not used.
pub(in crate::kernel) fn lines(features: &Features) -> u32 {
    u32::try_from(features.name_lines).unwrap_or(u32::MAX)
}

/// Reads the hashes of the names in recent queries.
pub struct CachedNameMap(MappedArray<NameLine>);

impl CachedNameMap {
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

    /// The number of cached names, if names stay cached for `cached_for_ns` nanoseconds; not at one
    /// moment.
    #[must_use]
    pub fn count(&self, cached_for_ns: u64) -> usize {
        let now_ns = monotonic_now();
        let lines = self.0.all().iter();
        lines.map(|line| line.count(cached_for_ns, now_ns)).sum()
    }
}
