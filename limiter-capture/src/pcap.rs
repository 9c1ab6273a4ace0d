//! pcap: one header, then packets, all of one link type.

use std::io::Read;

use super::{
    CaptureError,
    byte_order::ByteOrder,
    header::{Header, MAX_CAPTURED},
    input::Input,
    link::Link,
};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Masks the link type; the upper bits of its word describe frame check sequences.
const LINK_TYPE: u32 = 0xffff;

const NS_PER_SECOND: i128 = 1_000_000_000;

pub(super) struct Pcap {
    order: ByteOrder,
    ns_per_fraction: i128,
    link: Link,
}

impl Pcap {
    pub(super) fn open<R: Read>(
        magic: [u8; 4],
        input: &mut Input<R>,
    ) -> Result<Self, CaptureError> {
        let (order, ns_per_fraction) = [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find_map(|order| match order.u32(magic) {
                MICROSECONDS => Some((order, 1_000)),
                NANOSECONDS => Some((order, 1)),
                _ => None,
            })
            .ok_or(CaptureError::Foreign)?;
        let header: [u8; 20] = input.array("file header")?;
        // Version, time zone, accuracy and snapshot length are unused.
        let [_, _, _, _, link_type] = order.words(&header);
        let link_type = link_type & LINK_TYPE;
        Ok(Self {
            order,
            ns_per_fraction,
            link: Link::new(link_type).ok_or(CaptureError::LinkType(link_type))?,
        })
    }

    pub(super) fn next<R: Read>(
        &self,
        input: &mut Input<R>,
        data: &mut Vec<u8>,
    ) -> Result<Option<Header>, CaptureError> {
        let Some(header) = input.start::<16>("packet header")? else {
            return Ok(None);
        };
        let [seconds, fraction, captured, original_length] = self.order.words(&header);
        if captured > MAX_CAPTURED {
            return Err(input.damaged("a packet is longer than any frame"));
        }
        input.bytes(data, captured as usize, "packet")?;
        Ok(Some(Header {
            time_ns: i128::from(seconds) * NS_PER_SECOND
                + i128::from(fraction) * self.ns_per_fraction,
            original_length,
            link: self.link,
        }))
    }
}
