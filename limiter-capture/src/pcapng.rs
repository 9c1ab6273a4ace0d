//! pcapng: a sequence of blocks. Packets name their interface, which has a link type and a clock.

use std::io::Read;

use super::{
    CaptureError,
    byte_order::ByteOrder,
    header::{Header, MAX_CAPTURED},
    input::Input,
    link::Link,
};

/// The same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = 0x0a0d_0d0a_u32.to_le_bytes();
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
/// The obsolete packet block, replaced by enhanced packets.
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// The length of a block's fields before and after its body: the type, and twice the length.
const FRAMING: u32 = 12;
/// The length of the fields before the data in the body of both kinds of packet block.
const PACKET_HEADER: u32 = 20;
/// The length of the fields before the options in the body of an interface block.
const INTERFACE_HEADER: u32 = 8;
/// The longest body of an interface block, in bytes; real ones are far smaller.
const MAX_INTERFACE: u32 = 65_536;
/// The most interfaces, which bounds memory; real captures have far fewer.
const MAX_INTERFACES: usize = 65_536;

const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

const NS_PER_SECOND: i128 = 1_000_000_000;

pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    /// The time of the last packet: simple packets have no time and reuse it.
    last_time_ns: i128,
}

struct Interface {
    link_type: u32,
    snapshot_length: u32,
    unit: Unit,
    offset_ns: i128,
}

/// The unit of a time.
#[derive(Clone, Copy)]
enum Unit {
    /// A unit is this many nanoseconds.
    Ns(i128),
    /// This many units are one nanosecond.
    PerNs(i128),
    /// A unit is 2 to the power of minus this many seconds.
    PowerOfTwo(u8),
}

impl Unit {
    /// Decodes the option's byte: a power of ten or, with the upper bit set, of two.
    fn from_option(byte: u8) -> Self {
        let exponent = byte & 0x7f;
        if byte & 0x80 != 0 {
            Self::PowerOfTwo(exponent)
        } else if exponent <= 9 {
            Self::Ns(10_i128.pow(u32::from(9 - exponent)))
        } else {
            // Beyond 10^38 no 64-bit count reaches a nanosecond.
            let per_ns = 10_i128.checked_pow(u32::from(exponent - 9));
            Self::PerNs(per_ns.unwrap_or(i128::MAX))
        }
    }

    const fn ns(self, units: i128) -> i128 {
        match self {
            Self::Ns(ns) => units * ns,
            Self::PerNs(per_ns) => units / per_ns,
            Self::PowerOfTwo(exponent) => (units * NS_PER_SECOND) >> exponent,
        }
    }
}

impl Pcapng {
    /// Opens the first section; its block type has been read already.
    pub(super) fn open<R: Read>(input: &mut Input<R>) -> Result<Self, CaptureError> {
        let mut pcapng = Self {
            order: ByteOrder::Little,
            interfaces: Vec::new(),
            last_time_ns: 0,
        };
        pcapng.section(input)?;
        Ok(pcapng)
    }

    pub(super) fn next<R: Read>(
        &mut self,
        input: &mut Input<R>,
        data: &mut Vec<u8>,
    ) -> Result<Option<Header>, CaptureError> {
        while let Some(kind) = input.start("block")? {
            let kind = self.order.u32(kind);
            if kind == SECTION {
                self.section(input)?;
                continue;
            }
            let total = self.order.u32(input.array("block")?);
            let Some(body) = total.checked_sub(FRAMING) else {
                return Err(input.damaged("a block is shorter than its framing"));
            };
            let mut header = None;
            let read = match kind {
                INTERFACE => self.interface(input, body, data)?,
                ENHANCED_PACKET | OLD_PACKET => {
                    let (packet, read) = self.packet(input, body, data, kind)?;
                    header = Some(packet);
                    read
                }
                SIMPLE_PACKET => {
                    let (packet, read) = self.simple_packet(input, body, data)?;
                    header = Some(packet);
                    read
                }
                _ => 0,
            };
            // Padding, options, or a whole block of another kind.
            input.skip((body - read).into(), "block")?;
            self.closing_length(input, total)?;
            if header.is_some() {
                return Ok(header);
            }
        }
        Ok(None)
    }

    fn closing_length<R: Read>(
        &self,
        input: &mut Input<R>,
        total: u32,
    ) -> Result<(), CaptureError> {
        if self.order.u32(input.array("block")?) == total {
            Ok(())
        } else {
            Err(input.damaged("the lengths before and after a block differ"))
        }
    }

    /// Starts a section; its block type has been read already. The numbers of interfaces begin
    /// anew.
    fn section<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), CaptureError> {
        let total: [u8; 4] = input.array("section header")?;
        let magic: [u8; 4] = input.array("section header")?;
        let order = [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find(|order| order.u32(magic) == BYTE_ORDER);
        // For later sections too, although they follow valid blocks.
        self.order = order.ok_or(CaptureError::Foreign)?;
        self.interfaces.clear();
        let total = self.order.u32(total);
        let Some(rest) = total.checked_sub(FRAMING + 4) else {
            return Err(input.damaged("a block is shorter than its framing"));
        };
        input.skip(rest.into(), "section header")?;
        self.closing_length(input, total)
    }

    /// Reads the body of an interface block; returns the number of bytes read.
    fn interface<R: Read>(
        &mut self,
        input: &mut Input<R>,
        body: u32,
        data: &mut Vec<u8>,
    ) -> Result<u32, CaptureError> {
        if !(INTERFACE_HEADER..=MAX_INTERFACE).contains(&body)
            || self.interfaces.len() == MAX_INTERFACES
        {
            return Err(input.damaged("an interface's description has an impossible length"));
        }
        input.bytes(data, body as usize, "interface description")?;
        let (header, options) = data.split_at(INTERFACE_HEADER as usize);
        let [_, snapshot_length] = self.order.words(header);
        let mut interface = Interface {
            link_type: self.order.u16([header[0], header[1]]).into(),
            snapshot_length,
            unit: Unit::Ns(1_000),
            offset_ns: 0,
        };
        let mut options = options;
        while let [a, b, c, d, rest @ ..] = options {
            let length = usize::from(self.order.u16([*c, *d]));
            let Some(value) = rest.get(..length) else {
                return Err(input.damaged("an option is longer than its block"));
            };
            match (self.order.u16([*a, *b]), value) {
                (OPTION_TIME_RESOLUTION, [byte]) => interface.unit = Unit::from_option(*byte),
                (OPTION_TIME_OFFSET, value) => {
                    if let Ok(bytes) = value.try_into() {
                        interface.offset_ns = i128::from(self.order.i64(bytes)) * NS_PER_SECOND;
                    }
                }
                _ => {}
            }
            options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        Ok(body)
    }

    /// Reads the body of a packet block; returns the number of bytes read.
    fn packet<R: Read>(
        &mut self,
        input: &mut Input<R>,
        body: u32,
        data: &mut Vec<u8>,
        kind: u32,
    ) -> Result<(Header, u32), CaptureError> {
        let Some(room) = body.checked_sub(PACKET_HEADER) else {
            return Err(input.damaged("a packet's block is shorter than its header"));
        };
        let header: [u8; PACKET_HEADER as usize] = input.array("packet header")?;
        let [interface, time_high, time_low, captured, original_length] = self.order.words(&header);
        let interface = if kind == OLD_PACKET {
            self.order.u16([header[0], header[1]]).into()
        } else {
            interface
        };
        let (interface, link) = self.interface_of(input, interface)?;
        let units = i128::from(time_high) << 32 | i128::from(time_low);
        let time_ns = interface.unit.ns(units) + interface.offset_ns;
        if captured > MAX_CAPTURED || captured > room {
            return Err(input.damaged("a packet is longer than its block or any frame"));
        }
        self.last_time_ns = time_ns;
        input.bytes(data, captured as usize, "packet")?;
        let header = Header {
            time_ns,
            original_length,
            link,
        };
        Ok((header, PACKET_HEADER + captured))
    }

    /// Reads the body of a simple packet block; returns the number of bytes read.
    fn simple_packet<R: Read>(
        &self,
        input: &mut Input<R>,
        body: u32,
        data: &mut Vec<u8>,
    ) -> Result<(Header, u32), CaptureError> {
        let Some(room) = body.checked_sub(4) else {
            return Err(input.damaged("a packet's block is shorter than its header"));
        };
        let original_length = self.order.u32(input.array("packet header")?);
        // The block has no captured length: it is the original length, cut to the snapshot length.
        let (interface, link) = self.interface_of(input, 0)?;
        let snapshot_length = match interface.snapshot_length {
            0 => u32::MAX,
            length => length,
        };
        let captured = original_length.min(snapshot_length);
        if captured > MAX_CAPTURED || captured > room {
            return Err(input.damaged("a packet is longer than its block or any frame"));
        }
        input.bytes(data, captured as usize, "packet")?;
        let header = Header {
            time_ns: self.last_time_ns,
            original_length,
            link,
        };
        Ok((header, 4 + captured))
    }

    fn interface_of<R: Read>(
        &self,
        input: &Input<R>,
        index: u32,
    ) -> Result<(&Interface, Link), CaptureError> {
        let Some(interface) = self.interfaces.get(index as usize) else {
            return Err(input.damaged("a packet is of an interface that was not described"));
        };
        // An unsupported interface without packets is ignored.
        let link = Link::new(interface.link_type);
        let link = link.ok_or(CaptureError::LinkType(interface.link_type))?;
        Ok((interface, link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_becomes_nanoseconds() {
        let check = |option, units, ns| {
            assert_eq!(Unit::from_option(option).ns(units), ns, "{option:#x}");
        };
        check(0, 3, 3_000_000_000);
        check(3, 3, 3_000_000);
        check(6, 3, 3_000);
        check(9, 3, 3);
        check(12, 3_999, 3);
        check(0x7f, i128::from(u64::MAX), 0);
        check(0x80, 3, 3_000_000_000);
        check(0x81, 3, 1_500_000_000);
        check(0xa0, 1 << 31, 500_000_000);
        check(0xff, i128::from(u64::MAX), 0);
    }
}
