//! The settings that all contenders get.

use std::net::Ipv4Addr;

use bench_common::{Layout, Sink};

/// The sources that the limiter and the plain one have room for: the default capacity.
pub(crate) const ROOM: u32 = 1 << 20;

/// The settings for a contender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Its family is that of the limit.
    pub(crate) layout: Layout,
    /// The number of sources, as a power of two.
    pub(crate) sources_log2: u32,
    /// Packets that a source may send in a second, and in one burst.
    pub(crate) per_second: u64,
    /// A source with another limit, for contenders that have overrides.
    pub(crate) overridden: Option<Override>,
    /// The packets to drop right behind the limit.
    pub(crate) sink: Sink,
    /// Whether the program draws the sources.
    pub(crate) draw: bool,
}

/// Another limit for one source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Override {
    /// The source; only for IPv4 layouts.
    pub(crate) address: Ipv4Addr,
    /// Packets that it may send in a minute, one at a time.
    pub(crate) per_minute: u64,
}
