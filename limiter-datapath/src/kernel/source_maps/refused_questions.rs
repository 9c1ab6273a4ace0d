//! The map of questions of refused packets, which the kernel's programs report to userspace.

use std::sync::{Mutex, PoisonError};

use aya::maps::{Map, MapData, RingBuf};
use limiter_common::dns::{MOST_BYTES, Message};

use crate::kernel::{
    DatapathError,
    map::{again, error},
};

pub(super) const REFUSED_QUESTIONS: &str = "REFUSED_QUESTIONS";

/// Reads the starts of refused queries.
pub struct RefusedQuestionMap {
    data: MapData,
    ring: Mutex<RingBuf<MapData>>,
}

impl RefusedQuestionMap {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let Map::RingBuf(data) = open(REFUSED_QUESTIONS)? else {
            return Err(DatapathError::NoMap(REFUSED_QUESTIONS));
        };
        let ring = again(&data).map_err(error(REFUSED_QUESTIONS))?;
        let ring = Mutex::new(ring.try_into().map_err(error(REFUSED_QUESTIONS))?);
        Ok(Self { data, ring })
    }

    pub(super) const fn map(&self) -> (&'static str, &MapData) {
        (REFUSED_QUESTIONS, &self.data)
    }

    /// Calls `take` for each question reported since the last call, up to the map's capacity.
    pub fn take(&self, mut take: impl FnMut(&mut Message)) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        // Programs may add questions during the loop, so it has a bound.
        for _ in 0..MOST_AT_ONCE {
            let Some(item) = ring.next() else {
                return;
            };
            let mut message = Message::EMPTY;
            // The bytes behind the question come from earlier messages. The question marks its own end,
            // so no code reads them.
            let room = message.begin(MOST_BYTES as u64);
            for (to, byte) in room.iter_mut().zip(item.iter().take(MOST_BYTES)) {
                *to = *byte;
            }
            take(&mut message);
        }
    }
}

/// The maximum number of messages read at once: the map's capacity.
const MOST_AT_ONCE: usize = 65536 / MOST_BYTES;
