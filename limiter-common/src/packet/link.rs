//! What comes before the IP header, by the type of the device.

use super::{Frame, ethernet};
use crate::reason::Reason;

/// The header with which the frames of a device begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[repr(u64)]
pub enum Link {
    /// Ethernet II, and any VLAN tags.
    #[default]
    Ethernet,
    /// None: a frame is an IP packet, as on tun, WireGuard, PPP and tunnels.
    Ip,
}

/// The network protocols that limits apply to.
pub(super) enum Network {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Returns the network protocol; adds to `before` the length of all that comes before its header.
#[inline(always)]
pub(super) fn parse<F: Frame>(frame: &F, before: &mut usize) -> Result<Network, Reason> {
    match frame.link() {
        Link::Ethernet => ethernet::parse(frame, before),
        // Two bytes: of one LLVM makes a comparison that the verifier does not follow.
        Link::Ip => match frame.load(0) {
            Some([first, _]) if first >> 4 == 4 => Ok(Network::Ipv4),
            Some([first, _]) if first >> 4 == 6 => Ok(Network::Ipv6),
            _ => Err(Reason::NotIp),
        },
    }
}
