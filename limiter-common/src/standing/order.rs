//! Orders: requests from userspace to the kernel to apply an event to one source, like the orders
//! for [buckets](crate::table::Order).

use super::{Event, SourceId};

/// One order, as the kernel program reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EventOrder {
    /// The [source](SourceId).
    pub source: u64,
    /// The [value](Event::to_numbers) of the event.
    pub value: u64,
    /// The time, in nanoseconds.
    pub now_ns: u64,
    /// The [number](Event::to_numbers) of the event.
    pub event: u32,
    /// Keeps the size a multiple of eight without padding.
    pub unused: u32,
}

impl EventOrder {
    /// An order to apply the event to the source at the time `now_ns`, in nanoseconds.
    #[must_use]
    pub const fn new(source: SourceId, event: Event, now_ns: u64) -> Self {
        let (event, value) = event.to_numbers();
        Self {
            source: source.0,
            value,
            now_ns,
            event,
            unused: 0,
        }
    }
}
