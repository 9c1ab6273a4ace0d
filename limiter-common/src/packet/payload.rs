//! The payload behind a packet's network headers.

/// The part of an IP packet behind its last network header.
#[derive(Clone, Copy)]
pub(super) struct Payload {
    /// The IP protocol number.
    pub(super) protocol: u8,
    /// The hop limit of IPv6; 0 for IPv4.
    pub(super) hop_limit: u8,
    /// The start, from the IP header on.
    pub(super) offset: usize,
    /// The end, from the IP header on, without padding.
    pub(super) end: usize,
    /// It is not the start of the datagram, so it has no transport header.
    pub(super) later_fragment: bool,
    /// It is not the end of the datagram.
    pub(super) more_fragments: bool,
}

impl Payload {
    pub(super) const NONE: Self = Self {
        protocol: 0,
        hop_limit: 0,
        offset: 0,
        end: 0,
        later_fragment: false,
        more_fragments: false,
    };
}
