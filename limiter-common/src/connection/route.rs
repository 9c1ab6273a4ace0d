//! The route to a connection's peer, which shows whether the peer is this host.

/// The offsets of a socket's route and device in the kernel's structs, in bytes. They differ from
/// kernel to kernel; the loader finds them.
///
/// It consists of plain numbers, because the loader writes it into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RouteFields {
    /// 0: the offsets are unknown.
    pub are_known: u32,
    /// In `struct sock`: a pointer to the route (`struct dst_entry`).
    pub route: u32,
    /// In the route: a pointer to the device (`struct net_device`).
    pub device: u32,
    /// In the device: a `u32` with its flags.
    pub flags: u32,
}

impl RouteFields {
    /// Unknown offsets.
    pub const UNKNOWN: Self = Self {
        are_known: 0,
        route: 0,
        device: 0,
        flags: 0,
    };
}
