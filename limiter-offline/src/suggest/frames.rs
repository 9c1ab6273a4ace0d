//! Sorts captured packets by direction. The first packets are buffered until they show which end is the host.

use limiter_capture::{CapturedFrame, Packet};
use limiter_common::packet::{self, Facts};

use super::host::{Host, PacketDirection};

/// The buffer for the first packets: their number, and their bytes.
const FIRST_PACKETS: usize = 1 << 15;
const FIRST_BYTES: usize = 1 << 24;

/// Receives packets with a known direction.
pub trait Sink {
    /// The error that stops it.
    type Error;

    /// Looks ahead at one of the first packets. All of them are passed to `take` afterwards.
    fn observe(&mut self, way: PacketDirection, facts: &Facts);

    /// Takes a packet; the facts are `None` if it has no valid IP packet.
    fn take(
        &mut self,
        way: PacketDirection,
        packet: &Packet<'_>,
        facts: Option<&Facts>,
    ) -> Result<(), Self::Error>;
}

/// Sorts packets by direction. It buffers the first ones until they show which end is the host.
pub struct Frames<S> {
    sink: S,
    host: Option<Host>,
    /// `None`: passed on to the sink.
    first: Option<FirstPackets>,
}

#[derive(Default)]
struct FirstPackets {
    kept: Vec<KeptPacket>,
    bytes: usize,
}

struct KeptPacket {
    time_ns: i128,
    length: usize,
    data: Vec<u8>,
}

impl FirstPackets {
    fn keep(&mut self, packet: &Packet<'_>) {
        self.kept.push(KeptPacket {
            time_ns: packet.time_ns,
            length: packet.frame.length,
            data: packet.frame.data.to_vec(),
        });
        self.bytes += packet.frame.data.len();
    }

    const fn is_full(&self) -> bool {
        self.kept.len() >= FIRST_PACKETS || self.bytes >= FIRST_BYTES
    }

    fn packets(&self) -> impl Iterator<Item = Packet<'_>> {
        self.kept.iter().map(|kept| Packet {
            time_ns: kept.time_ns,
            frame: CapturedFrame {
                data: &kept.data,
                length: kept.length,
            },
        })
    }
}

impl<S: Sink> Frames<S> {
    /// Starts to sort packets of a host; `None`: find the host by the first packets.
    pub fn new(sink: S, host: Option<Host>) -> Self {
        Self {
            sink,
            host,
            first: Some(FirstPackets::default()),
        }
    }

    /// Sorts the next packet.
    pub fn sort(&mut self, packet: &Packet<'_>) -> Result<(), S::Error> {
        let Some(first) = &mut self.first else {
            let host = self.host.as_ref().unwrap_or(&Host::Unknown);
            return pass(&mut self.sink, host, packet);
        };
        first.keep(packet);
        if first.is_full() {
            self.take_first()?;
        }
        Ok(())
    }

    /// Passes on buffered packets, and returns the sink.
    pub fn finish(mut self) -> Result<(S, Host), S::Error> {
        self.take_first()?;
        Ok((self.sink, self.host.unwrap_or(Host::Unknown)))
    }

    fn take_first(&mut self) -> Result<(), S::Error> {
        let Some(first) = self.first.take() else {
            return Ok(());
        };
        let parsed = || first.packets().map(|packet| (packet.frame, parse(&packet)));
        let host = self.host.get_or_insert_with(|| Host::of(parsed()));
        for (frame, facts) in parsed() {
            if let Some(facts) = &facts {
                self.sink.observe(host.way(&frame, Some(facts)), facts);
            }
        }
        for packet in first.packets() {
            pass(&mut self.sink, host, &packet)?;
        }
        Ok(())
    }
}

fn pass<S: Sink>(sink: &mut S, host: &Host, packet: &Packet<'_>) -> Result<(), S::Error> {
    let facts = parse(packet);
    let way = host.way(&packet.frame, facts.as_ref());
    sink.take(way, packet, facts.as_ref())
}

/// Parses a packet; `None`: it is not valid IP.
fn parse(packet: &Packet<'_>) -> Option<Facts> {
    let mut facts = Facts::NONE;
    packet::parse(&packet.frame, &mut facts)
        .is_ok()
        .then_some(facts)
}
