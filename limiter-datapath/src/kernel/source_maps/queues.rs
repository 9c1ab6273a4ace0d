//! The maps of the queues in which clients wait for limits on connections. The kernel's programs change
//! them; userspace only reads, and orders changes.

use aya::maps::{Array, HashMap, IterableMap as _, Map, MapData, MapError};
use limiter_common::{
    connection::{
        CountId,
        queue::{FIRST_TRY_LINES, Queue, QueueTraffic, Ticket, TicketKey},
    },
    limit::LimitId,
    policy::Features,
};
use serde::{Deserialize, Serialize};

use crate::kernel::{DatapathError, hash, map::error, pod::InMap};

pub(in crate::kernel) const QUEUES: &str = "QUEUES";
pub(in crate::kernel) const TICKETS: &str = "TICKETS";
pub(in crate::kernel) const TICKET_KEYS: &str = "TICKET_KEYS";
pub(in crate::kernel) const FIRST_SYNS: &str = "FIRST_SYNS";
pub(in crate::kernel) const QUEUE_TRAFFIC: &str = "QUEUE_TRAFFIC";

/// The number of tickets under a policy with queues.
const TICKET_CAPACITY: u32 = 1 << 16;

/// The maximum number of keys with a queue.
const QUEUE_CAPACITY: u32 = 1 << 13;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueSizes {
    queues: u32,
    tickets: u32,
    first_syns: u32,
}

impl QueueSizes {
    pub(super) const fn of(features: &Features) -> Self {
        let (queues, tickets, first_syns) = if features.queueing == 0 {
            (0, 0, 0)
        } else {
            (QUEUE_CAPACITY, TICKET_CAPACITY, FIRST_TRY_LINES)
        };
        Self {
            queues,
            tickets,
            first_syns,
        }
    }
}

/// Reads the maps of queues.
pub struct QueueMaps {
    queues: HashMap<MapData, InMap<u64>, InMap<Queue>>,
    tickets: HashMap<MapData, InMap<TicketKey>, InMap<Ticket>>,
    keys: HashMap<MapData, InMap<u64>, InMap<TicketKey>>,
    first_syns: Array<MapData, [u64; 8]>,
    traffic: Array<MapData, InMap<QueueTraffic>>,
}

impl QueueMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let keys = open(TICKET_KEYS)?.try_into();
        Ok(Self {
            queues: open(QUEUES)?.try_into().map_err(error(QUEUES))?,
            tickets: open(TICKETS)?.try_into().map_err(error(TICKETS))?,
            keys: keys.map_err(error(TICKET_KEYS))?,
            first_syns: open(FIRST_SYNS)?.try_into().map_err(error(FIRST_SYNS))?,
            traffic: open(QUEUE_TRAFFIC)?
                .try_into()
                .map_err(error(QUEUE_TRAFFIC))?,
        })
    }

    pub(super) fn maps(&self) -> [(&'static str, &MapData); 5] {
        [
            (QUEUES, self.queues.map()),
            (TICKETS, self.tickets.map()),
            (TICKET_KEYS, self.keys.map()),
            (FIRST_SYNS, self.first_syns.map()),
            (QUEUE_TRAFFIC, self.traffic.map()),
        ]
    }

    /// Every queue with its count id; not at one moment.
    pub fn all(&self) -> Result<Vec<(CountId, Queue)>, DatapathError> {
        let queues = hash::read(&self.queues).map_err(error(QUEUES))?;
        let queues = queues.into_iter();
        Ok(queues
            .map(|(count_id, queue)| (CountId(count_id), queue))
            .collect())
    }

    /// The queue under a count id; an empty one if there is none.
    pub fn queue(&self, count_id: CountId) -> Result<Queue, DatapathError> {
        match self.queues.get(&InMap(count_id.0), 0) {
            Ok(InMap(queue)) => Ok(queue),
            Err(MapError::KeyNotFound) => Ok(Queue::default()),
            Err(other) => Err(error(QUEUES)(other)),
        }
    }

    /// Every ticket, including expired tickets that are not yet removed; not at one moment.
    pub fn tickets(&self) -> Result<Vec<(TicketKey, Ticket)>, DatapathError> {
        hash::read(&self.tickets).map_err(error(TICKETS))
    }

    /// The counts of events in a limit's queues.
    pub fn traffic(&self, limit: LimitId) -> Result<QueueTraffic, DatapathError> {
        let InMap(traffic) = self
            .traffic
            .get(&limit.0.into(), 0)
            .map_err(error(QUEUE_TRAFFIC))?;
        Ok(traffic)
    }
}

/// The number of entries of the named map; `None`: the map is not one of these, or its size is fixed.
pub(super) fn entries(map: &str, sizes: QueueSizes) -> Option<u32> {
    match map {
        QUEUES => Some(sizes.queues),
        TICKETS | TICKET_KEYS => Some(sizes.tickets),
        FIRST_SYNS => Some(sizes.first_syns),
        _ => None,
    }
}
