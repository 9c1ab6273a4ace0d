//! A packet's header in either format, reduced to the fields that a replay needs.

use super::link::Link;

/// The longest frame in bytes: libpcap's bound for Ethernet, and small enough to allocate.
pub(super) const MAX_CAPTURED: u32 = 262_144;

/// The fields of a packet's header, apart from its bytes.
pub(super) struct Header {
    pub(super) time_ns: i128,
    pub(super) original_length: u32,
    pub(super) link: Link,
}
