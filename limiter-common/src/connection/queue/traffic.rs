//! Counters of the clients in a limit's queues.

/// An event of a client in line, as Traffic Server's metrics call it.
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

/// The number of waiting-time counters: the first is for waits up to a second, each of the next for up to
/// twice as long as the one before, the last for all longer waits.
pub const WAITS: usize = 11;

/// The counters of a limit's queues. It consists of plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct QueueTraffic {
    /// The number of times that each [`QueueEvent`] happened.
    pub events: [u64; EVENTS],
    /// The number of clients by waiting time.
    pub waits: [u64; WAITS],
    /// The sum of all waiting times, in nanoseconds.
    pub waited_ns: u64,
}

impl QueueTraffic {
    /// The number of times that an event happened.
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
