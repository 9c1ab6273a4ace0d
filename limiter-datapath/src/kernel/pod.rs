//! The core's types as the bytes of map keys and values.

use aya::Pod;
use limiter_common::{
    answer::{OwnAddress, SocketFields},
    attachment_facts::{AttachmentFacts, MOST_ANSWERED, ProgramFacts, SLOTS},
    ban::{Ban, BanKey, Hits, MAX_TEXT},
    connection::{
        ConnectionOrder, Ends, MOST_LIMITS, RouteFields,
        queue::{Queue, QueueSettings, QueueTraffic, Ticket, TicketKey, WAITS},
    },
    cookie::{CookieKeys, MAX_SECRETS},
    counters::{LimitTraffic, Traffic},
    decide::Verdict,
    key::BucketKey,
    name_hash::NameKeys,
    offender::{Offender, OffenderKey, Recording},
    policy::NameSlot,
    policy::{Child, Class, Features, LimitEntry, MOST_OTHERWISE, Node, Stretch},
    server_name::{FirstBytes, FlowRecord, MOST_FIRST_BYTES, QuicFlow},
    sieve::{Pressure, Sieve, SieveTraffic, SieveUse},
    standing::{EventOrder, Reserves},
    strategy::Parameters,
    table::Order,
    unit::Unit,
};

/// A type of the core in a map. The core itself does not know maps.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct InMap<T: Copy + 'static>(pub(super) T);

/// Types that are plain bytes.
///
/// # Safety
///
/// The type is `repr(C)` or `repr(transparent)` and consists only of integers. It has no padding,
/// so every byte is defined. It has no `bool`, enumeration, pointer or reference, so every bit
/// pattern is a value.
pub(super) unsafe trait PlainBytes: Copy + 'static {}

/// Declares types [`PlainBytes`], each with the sum of its fields' sizes. The compiler compares the
/// sum with the type's size, and so finds padding.
macro_rules! plain_bytes {
    ($($type:ty: $size:expr,)*) => {$(
        const _: () = assert!(
            size_of::<$type>() == $size,
            concat!(stringify!($type), " has padding, or another field")
        );

        // SAFETY: the type is `repr(C)`, an integer, or an array of integers. The author of its
        // line has checked that its fields are integers; their sizes add up to the type's.
        unsafe impl PlainBytes for $type {}
    )*};
}

plain_bytes! {
    AttachmentFacts: 7 * 4 + 4 + MOST_ANSWERED * 8,
    ProgramFacts: SLOTS * size_of::<AttachmentFacts>() + 8,
    Ban: 2 * 8 + 2 * 2 + (2 * 2 + MAX_TEXT),
    BanKey: 2 * 2 + 4 + 2 * 8,
    BucketKey: 2 * 2 + 4 + 2 * 8,
    ConnectionOrder: 3 * 8 + (4 + 2 * 2 + 4 * 8),
    Ends: 4 + 2 * 2 + 4 * 8,
    CookieKeys: 8 + MAX_SECRETS * 2 * 8,
    FirstBytes: MOST_FIRST_BYTES as usize,
    FlowRecord: 8 + 3 * 8 + 8 + 4 * 4 + 4 * 2,
    QuicFlow: 3 * 8 + 8,
    Hits: 2 * 8,
    OwnAddress: 3 * 8,
    Parameters: (3 * 8 + 2 * 16) + (2 * 8 + 8) + 8,
    Class: 3 * 8 + 2 * 4,
    EventOrder: 3 * 8 + 2 * 4,
    LimitEntry: 2 + 2 + 4 + 2 * (2 * 4 + 2 * 8) + 8 + 2 * 4 + 8,
    LimitTraffic: 3 * 16,
    NameKeys: (2 * 2 * 32 + 2) * 8,
    NameSlot: 2 * 8 + 3 * 4 + 2 * 2,
    Node: 3 * 8 + 4 + 2 * 2,
    Offender: 3 * 8,
    OffenderKey: 2 * 2 + 4 + 2 * 8,
    Order: (2 * 2 + 4 + 2 * 8) + 8 + (4 * 8 + 4 + 4) + 3 * 8 + 2 * 4,
    Pressure: 2 * 4 + 8,
    RawVerdict: 2 * 4 + 2 * 8 + 2 * 4,
    Recording: 8 + 3 * 8,
    Reserves: 5 * 8,
    RouteFields: 4 * 4,
    Queue: 4 * 8,
    QueueTraffic: 4 * 8 + WAITS * 8 + 8,
    Ticket: 4 * 8,
    TicketKey: 2 * 8,
    Features: 10 * 4 + 31 * 8 + MOST_LIMITS * (size_of::<QueueSettings>() + 8) + 8 + 2 * 8 * MOST_OTHERWISE + (1 + 1 + 2 + 2 + 5 + 5) * 8 + (4 * 4 + 5 * 8 + 2 * 4) + 8 * 4,
    Sieve: 4 * 8 + 8 * 4,
    SieveTraffic: 3 * 16 + 2 * 8,
    SieveUse: 8 + 2 * 4,
    SocketFields: 10 * 4,
    Child: 4,
    Stretch: 2 * 4 + 3 * 8,
    Traffic: 2 * 8,
    Unit: 8 + 2 * 16 + 8,
    u32: 4,
    u64: 8,
    [u64; 2]: 2 * 8,
}

/// A [`Verdict`] as bytes in memory. Unlike a [`Verdict`], it can hold numbers that are no reason.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct RawVerdict {
    reason: u32,
    refused_by: u32,
    matched: u64,
    would_drop: u64,
    standing: u32,
    answer: u32,
}

impl RawVerdict {
    pub(super) const fn verdict(self) -> Option<Verdict> {
        Verdict::from_raw(
            self.reason,
            self.refused_by,
            self.matched,
            self.would_drop,
            self.standing,
            self.answer,
        )
    }
}

// SAFETY: `repr(transparent)` over a type with the same requirements by `PlainBytes`.
unsafe impl<T: PlainBytes> Pod for InMap<T> {}

const _: () = assert!(size_of::<RawVerdict>() == size_of::<Verdict>(), "the same");
