//! Ethernet II with up to two VLAN tags.

use super::Frame;
use crate::reason::Reason;

/// The network protocols that are limited.
pub(super) enum Network {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

const HEADER: usize = 14;
const TAG: usize = 4;
const MAX_TAGS: u32 = 2;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_8021Q: u16 = 0x8100;
const TYPE_8021AD: u16 = 0x88a8;
/// What switches used for the outer tag before 802.1ad.
const TYPE_QINQ: u16 = 0x9100;

/// The network protocol; `offset` becomes that of its header.
#[inline(always)]
pub(super) fn parse<F: Frame>(frame: &F, offset: &mut usize) -> Result<Network, Reason> {
    let Some(_) = frame.load::<HEADER>(0) else {
        return Err(Reason::MalformedEthernet);
    };
    *offset = HEADER;
    let mut tags = 0;
    loop {
        // The type stands in the two bytes before whatever it is the type of.
        let Some(kind) = frame.load::<2>(*offset - 2) else {
            return Err(Reason::MalformedVlan);
        };
        match u16::from_be_bytes(kind) {
            TYPE_IPV4 => return Ok(Network::Ipv4),
            TYPE_IPV6 => return Ok(Network::Ipv6),
            TYPE_8021Q | TYPE_8021AD | TYPE_QINQ if tags < MAX_TAGS => {
                tags += 1;
                *offset += TAG;
            }
            _ => return Err(Reason::NotIp),
        }
    }
}
