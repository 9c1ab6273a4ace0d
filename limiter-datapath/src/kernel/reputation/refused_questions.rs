//! The map of questions of refused packets, which the kernel's programs tell userspace.

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

    /// Returns the map with its name.
    pub(super) const fn map(&self) -> (&'static str, &MapData) {
        (REFUSED_QUESTIONS, &self.data)
    }

    /// Hands over what was told since the last time: at most as much as there is room for.
    pub fn take(&self, mut take: impl FnMut(&mut Message)) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        // The programs may add while it is read.
        for _ in 0..MOST_AT_ONCE {
            let Some(item) = ring.next() else {
                return;
            };
            let mut message = Message::EMPTY;
            // Behind the question are bytes of earlier messages, which nobody reads: it ends by itself.
            let room = message.begin(MOST_BYTES as u64);
            for (to, byte) in room.iter_mut().zip(item.iter().take(MOST_BYTES)) {
                *to = *byte;
            }
            take(&mut message);
        }
    }
}

/// The most messages that are read at once: as many as the map has room for.
const MOST_AT_ONCE: usize = 65536 / MOST_BYTES;
