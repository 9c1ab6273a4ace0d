//! The header that comes before the IP header, by the type of the device.

/// The header at the start of a device's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[repr(u32)]
pub enum Link {
    /// Ethernet II, and any VLAN tags.
    #[default]
    Ethernet,
    /// None: a frame is an IP packet, as on tun, WireGuard, PPP and tunnels.
    Ip,
}
