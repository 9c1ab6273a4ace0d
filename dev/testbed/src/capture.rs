//! Builds capture files, byte by byte.

/// A packet of a capture.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// The captured bytes.
    pub data: Vec<u8>,
    /// Its length on the wire, in bytes.
    pub length: usize,
}

impl Packet {
    /// Makes a packet that is captured to its end.
    #[must_use]
    pub fn whole(time_ns: u64, data: Vec<u8>) -> Self {
        let length = data.len();
        Self {
            time_ns,
            data,
            length,
        }
    }

    /// Cuts the captured bytes to a snapshot length.
    #[must_use]
    pub fn cut_to(mut self, captured: usize) -> Self {
        self.data.truncate(captured);
        self
    }
}

/// The format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The kind of file.
    pub container: Container,
    /// The byte order of the machine that wrote it.
    pub big_endian: bool,
    /// Whether times are in nanoseconds instead of microseconds.
    pub nanoseconds: bool,
    /// The number in libpcap's registry: 1 is Ethernet.
    pub link_type: u16,
}

/// The kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// A header, then packets.
    Pcap,
    /// Blocks.
    Pcapng,
}

/// tcpdump's format.
pub const PCAP: Format = Format {
    container: Container::Pcap,
    big_endian: false,
    nanoseconds: false,
    link_type: 1,
};

/// Wireshark's format, with nanoseconds.
pub const PCAPNG: Format = Format {
    container: Container::Pcapng,
    nanoseconds: true,
    ..PCAP
};

impl Format {
    /// Returns the bytes of the file.
    ///
    /// # Panics
    ///
    /// If a time or a length does not fit the format.
    #[must_use]
    pub fn write(self, packets: &[Packet]) -> Vec<u8> {
        match self.container {
            Container::Pcap => self.pcap(packets),
            Container::Pcapng => self.pcapng(packets),
        }
    }

    fn u16(self, value: u16) -> [u8; 2] {
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u32(self, value: u64) -> [u8; 4] {
        let value = u32::try_from(value).expect("a value of 32 bits");
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn words<const N: usize>(self, values: [u64; N]) -> Vec<u8> {
        values
            .into_iter()
            .flat_map(|value| self.u32(value))
            .collect()
    }

    fn pcap(self, packets: &[Packet]) -> Vec<u8> {
        let (magic, unit) = if self.nanoseconds {
            (0xa1b2_3c4d, 1)
        } else {
            (0xa1b2_c3d4, 1_000)
        };
        let mut bytes = self.words([magic]);
        bytes.extend(self.u16(2));
        bytes.extend(self.u16(4));
        bytes.extend(self.words([0, 0, 262_144, self.link_type.into()]));
        for packet in packets {
            let (seconds, rest) = (
                packet.time_ns / 1_000_000_000,
                packet.time_ns % 1_000_000_000,
            );
            let (captured, length) = (packet.data.len() as u64, packet.length as u64);
            bytes.extend(self.words([seconds, rest / unit, captured, length]));
            bytes.extend(&packet.data);
        }
        bytes
    }

    fn pcapng(self, packets: &[Packet]) -> Vec<u8> {
        let mut section = self.words([0x1a2b_3c4d]);
        section.extend(self.u16(1));
        section.extend(self.u16(0));
        section.extend([0xff; 8]);
        let mut bytes = self.block(0x0a0d_0d0a, &section);

        let mut interface = Vec::new();
        interface.extend(self.u16(self.link_type));
        interface.extend(self.u16(0));
        interface.extend(self.words([262_144]));
        if self.nanoseconds {
            interface.extend(self.u16(9));
            interface.extend(self.u16(1));
            interface.extend([9, 0, 0, 0]);
        }
        interface.extend([0; 4]);
        bytes.extend(self.block(1, &interface));
        // A block that readers may skip.
        bytes.extend(self.block(0x0bad, b"name"));

        let unit = if self.nanoseconds { 1 } else { 1_000 };
        for packet in packets {
            let units = packet.time_ns / unit;
            let (captured, length) = (packet.data.len() as u64, packet.length as u64);
            let mut body = self.words([0, units >> 32, units & 0xffff_ffff, captured, length]);
            body.extend(&packet.data);
            body.resize(body.len().next_multiple_of(4), 0);
            bytes.extend(self.block(6, &body));
        }
        bytes
    }

    fn block(self, kind: u64, body: &[u8]) -> Vec<u8> {
        let total = self.u32(body.len() as u64 + 12);
        [&self.u32(kind), &total, body, &total].concat()
    }
}
