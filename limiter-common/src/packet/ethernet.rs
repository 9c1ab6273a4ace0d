//! Ethernet II and its VLAN tags.

use super::Frame;
use crate::reason::Reason;

/// The network protocols that limits apply to.
pub(super) enum Network {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// The length of the header in bytes, without tags.
const HEADER: usize = 14;

const TAG: usize = 4;

/// The network stack removes any number of tags with VLAN 0, and one more for each VLAN interface
/// on the way. Networks use two or three; only an attacker needs more than this.
const MAX_TAGS: usize = 8;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_8021Q: u16 = 0x8100;
const TYPE_8021AD: u16 = 0x88a8;
/// The outer tag that switches used before 802.1ad. Linux does not remove it; a switch behind a
/// bridge may.
const TYPE_QINQ: u16 = 0x9100;

/// Returns the network protocol; adds to `before` the length of the header and of all tags.
#[inline(always)]
pub(super) fn parse<F: Frame>(frame: &F, before: &mut usize) -> Result<Network, Reason> {
    let Some(_) = frame.load::<HEADER>(0) else {
        return Err(Reason::MalformedEthernet);
    };
    *before += HEADER;
    loop {
        // The type is in the two bytes before the data that it describes.
        let Some(kind) = frame.load::<2>(*before - 2) else {
            return Err(Reason::MalformedVlan);
        };
        match u16::from_be_bytes(kind) {
            TYPE_8021Q | TYPE_8021AD | TYPE_QINQ if *before == HEADER + MAX_TAGS * TAG => {
                return Err(Reason::MalformedVlan);
            }
            TYPE_8021Q | TYPE_8021AD | TYPE_QINQ => *before += TAG,
            TYPE_IPV4 => return Ok(Network::Ipv4),
            TYPE_IPV6 => return Ok(Network::Ipv6),
            _ => return Err(Reason::NotIp),
        }
    }
}
