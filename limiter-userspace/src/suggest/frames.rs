//! Tells the packets to the host from those that it sends.

use limiter_capture::{CapturedFrame, Packet};
use limiter_common::packet::{self, Facts};

use super::host::{Host, Way};

/// How many packets, and how many of their bytes, are kept until it is decided whose they are.
const FIRST_PACKETS: usize = 1 << 15;
const FIRST_BYTES: usize = 1 << 24;

/// Takes packets that are known to go one way or another.
pub trait Sink {
    /// Why it cannot take any more.
    type Error;

    /// Looks at a packet of the first ones, all of which come again to be taken.
    fn look(&mut self, way: Way, facts: &Facts);

    /// Takes a packet; the facts are `None` if it has no valid IP packet.
    fn take(
        &mut self,
        way: Way,
        packet: &Packet<'_>,
        facts: Option<&Facts>,
    ) -> Result<(), Self::Error>;
}

/// Sorts packets. It keeps the first ones, until they show whose packets they are.
pub struct Frames<S> {
    sink: S,
    host: Option<Host>,
    /// `None`: they have been taken.
    first: Option<First>,
}

/// The first packets.
#[derive(Default)]
struct First {
    kept: Vec<Kept>,
    bytes: usize,
}

struct Kept {
    time_ns: i128,
    length: usize,
    data: Vec<u8>,
}

impl First {
    fn keep(&mut self, packet: &Packet<'_>) {
        self.kept.push(Kept {
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
    /// Begins to sort packets of a host; `None`: the first ones must tell which.
    pub fn new(sink: S, host: Option<Host>) -> Self {
        Self {
            sink,
            host,
            first: Some(First::default()),
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

    /// Takes the first packets, if they wait, and returns the sink.
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
                self.sink.look(host.way(&frame, Some(facts)), facts);
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

/// Returns the facts of a valid IP packet.
fn parse(packet: &Packet<'_>) -> Option<Facts> {
    let mut facts = Facts::NONE;
    packet::parse(&packet.frame, &mut facts)
        .is_ok()
        .then_some(facts)
}
