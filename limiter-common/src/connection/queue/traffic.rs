//! What happened to the clients in the queues of a limit.

/// What happens to a client in line, as Traffic Server's metrics call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum QueueEvent {
    /// It took a ticket.
    Queued,
    /// It waited, and its connection is established.
    Resumed,
    /// It waited for too long, or has given up.
    Expired,
    /// It tried again, and the line had no room for it.
    Rejected,
}

/// The number of [`QueueEvent`]s.
const EVENTS: usize = 4;

/// The number of counters of how long clients waited: the first is of those up to a second, each of
/// the next of up to twice as long as the one before, the last of all others.
pub const WAITS: usize = 11;

/// The counters of a limit's queues. It consists of plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct QueueTraffic {
    /// How often each [`QueueEvent`] happened.
    pub events: [u64; EVENTS],
    /// How many clients waited how long.
    pub waits: [u64; WAITS],
    /// How long all of them together waited, in nanoseconds.
    pub waited_ns: u64,
}

impl QueueTraffic {
    /// Returns how often an event happened.
    #[must_use]
    pub const fn count(&self, event: QueueEvent) -> u64 {
        self.events[event as usize]
    }

    /// Returns the index of the counter of a wait in [`Self::waits`].
    #[must_use]
    #[inline(always)]
    pub const fn wait_index(wait_ns: u64) -> usize {
        let last = WAITS - 1;
        let seconds = wait_ns.div_ceil(1_000_000_000);
        let mut index = 0;
        while index < last && seconds > 1 << index {
            index += 1;
        }
        index
    }
}
