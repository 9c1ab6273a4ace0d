//! The maps of server names: the kernel's programs note the connections, userspace their names, and QUIC flows
//! with theirs.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use aya::{
    Pod,
    maps::{HashMap, IterableMap as _, Map, MapData, MapError, PerCpuArray, RingBuf},
};
use limiter_common::{
    connection::Ends,
    policy::Shape,
    server_name::{FirstBytes as BytesRead, Flow, Loss, Piece, QuicFlow},
};
use limiter_policy::policy::ServerNames;

use crate::kernel::{
    DatapathError, hash,
    map::{again, error, sum},
    pod::InMap,
};

pub(in crate::kernel) const SERVER_FLOWS: &str = "SERVER_FLOWS";
pub(in crate::kernel) const QUIC_FLOWS: &str = "QUIC_FLOWS";
pub(in crate::kernel) const FIRST_BYTES: &str = "FIRST_BYTES";
pub(super) const FIRST_BYTES_LOST: &str = "FIRST_BYTES_LOST";
pub(in crate::kernel) const FIRST_BYTES_READ: &str = "FIRST_BYTES_READ";

/// How many connections are noted at once under a policy that asks for names: more have none.
const CAPACITY: u32 = 1 << 18;

/// How many QUIC flows have names at once under a policy that counts them: of more, those of which nothing was
/// heard for the longest time have none. As many as one who follows them keeps.
const QUIC_CAPACITY: u32 = 1 << 17;

/// The number of connections of which programs know the bytes that were read, under a policy that asks for names: 34 MB. Those
/// that were not compared for a long time give way, and are told again if they are missed.
const READ_CAPACITY: u32 = 1 << 13;

/// The bytes that first bytes have, under such a policy and any other: pages, and a power of two.
const ROOM: u32 = 1 << 21;
const LEAST_ROOM: u32 = 1 << 16;

/// `BPF_EXIST`, from linux/bpf.h.
const EXISTING: u64 = 2;

/// Returns how many connections a policy of that shape notes; 0: none.
pub(in crate::kernel) const fn capacity(shape: &Shape) -> u32 {
    if shape.by_server_name == 0 {
        0
    } else {
        CAPACITY
    }
}

/// Returns how many QUIC flows a policy that says that of names notes; 0: none.
pub(in crate::kernel) const fn quic_capacity(names: &ServerNames) -> u32 {
    if names.are_of_quic() {
        QUIC_CAPACITY
    } else {
        0
    }
}

/// Returns how many entries the named map has if so many connections and QUIC flows are noted; `None`: it is
/// none of these.
pub(super) fn entries(map: &str, capacity: u32, quic_capacity: u32) -> Option<u32> {
    match map {
        SERVER_FLOWS => Some(capacity),
        QUIC_FLOWS => Some(quic_capacity),
        FIRST_BYTES_READ => Some(capacity.min(READ_CAPACITY)),
        FIRST_BYTES if capacity == 0 => Some(LEAST_ROOM),
        FIRST_BYTES => Some(ROOM),
        _ => None,
    }
}

/// Holds the connections and QUIC flows that limits may count by their names, and their first bytes.
pub struct ServerNameMaps {
    flows: HashMap<MapData, InMap<Ends>, InMap<Flow>>,
    quic_flows: HashMap<MapData, InMap<Ends>, InMap<QuicFlow>>,
    first_bytes: MapData,
    lost: PerCpuArray<MapData, InMap<u64>>,
    read: HashMap<MapData, InMap<Ends>, InMap<BytesRead>>,
}

impl ServerNameMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let flows = open(SERVER_FLOWS)?;
        Ok(Self {
            flows: flows.try_into().map_err(error(SERVER_FLOWS))?,
            quic_flows: open(QUIC_FLOWS)?.try_into().map_err(error(QUIC_FLOWS))?,
            first_bytes: match open(FIRST_BYTES)? {
                Map::RingBuf(data) => data,
                _ => return Err(DatapathError::NoMap(FIRST_BYTES)),
            },
            lost: open(FIRST_BYTES_LOST)?
                .try_into()
                .map_err(error(FIRST_BYTES_LOST))?,
            read: open(FIRST_BYTES_READ)?
                .try_into()
                .map_err(error(FIRST_BYTES_READ))?,
        })
    }

    /// Returns the maps with their names.
    pub(in crate::kernel) fn maps(&self) -> [(&'static str, &MapData); 5] {
        [
            (SERVER_FLOWS, self.flows.map()),
            (QUIC_FLOWS, self.quic_flows.map()),
            (FIRST_BYTES, &self.first_bytes),
            (FIRST_BYTES_LOST, self.lost.map()),
            (FIRST_BYTES_READ, self.read.map()),
        ]
    }

    /// Returns how many segments or datagrams were not told, for a reason, by all CPUs' counts.
    pub fn lost(&self, loss: Loss) -> Result<u64, DatapathError> {
        sum(&self.lost, loss as u32).map_err(error(FIRST_BYTES_LOST))
    }

    /// Returns the one who reads first bytes and writes down names, by descriptors of its own. There must be one
    /// at a time: it does not see what another has read.
    pub fn namer(&self) -> Result<Namer, DatapathError> {
        let flows = again(self.flows.map()).map_err(error(SERVER_FLOWS))?;
        let quic_flows = again(self.quic_flows.map()).map_err(error(QUIC_FLOWS))?;
        let first_bytes = again(&self.first_bytes).map_err(error(FIRST_BYTES))?;
        let read = again(self.read.map()).map_err(error(FIRST_BYTES_READ))?;
        Ok(Namer {
            flows: flows.try_into().map_err(error(SERVER_FLOWS))?,
            quic_flows: quic_flows.try_into().map_err(error(QUIC_FLOWS))?,
            first_bytes: first_bytes.try_into().map_err(error(FIRST_BYTES))?,
            read: read.try_into().map_err(error(FIRST_BYTES_READ))?,
        })
    }

    /// Returns what is known of a connection; `None`: it is not noted, or not any more.
    pub fn flow(&self, ends: &Ends) -> Result<Option<Flow>, DatapathError> {
        flow(&self.flows, ends)
    }

    /// Notes a connection.
    #[cfg(feature = "testing")]
    pub fn add(&self, ends: Ends, flow: Flow) -> Result<(), DatapathError> {
        let written = hash::write(&self.flows, &[InMap(ends)], &[InMap(flow)]);
        written.map_err(error(SERVER_FLOWS))
    }

    /// Notes which first bytes of a connection were read.
    #[cfg(feature = "testing")]
    pub fn add_first_bytes(&self, ends: Ends, bytes: BytesRead) -> Result<(), DatapathError> {
        let written = hash::write(&self.read, &[InMap(ends)], &[InMap(bytes)]);
        written.map_err(error(FIRST_BYTES_READ))
    }

    /// Notes a QUIC flow.
    #[cfg(feature = "testing")]
    pub fn add_quic(&self, ends: Ends, flow: QuicFlow) -> Result<(), DatapathError> {
        let written = hash::write(&self.quic_flows, &[InMap(ends)], &[InMap(flow)]);
        written.map_err(error(QUIC_FLOWS))
    }
}

/// First bytes of a flow, as the kernel's programs tell them.
#[derive(Clone, Copy, Debug)]
pub struct FirstBytes<'p> {
    /// The ends of the flow.
    pub ends: Ends,
    /// The number of its IP protocol: TCP or UDP.
    pub protocol: u8,
    /// How many bytes the segment has with its TCP header, or the datagram's content has.
    pub length: u32,
    /// Those that are told: of the segment with its TCP header, or of the datagram's content.
    pub bytes: &'p [u8],
}

impl<'p> FirstBytes<'p> {
    /// Takes apart a piece; `None`: no program tells such a one.
    fn new(piece: &'p [u8]) -> Option<Self> {
        let (header, bytes) = piece.split_first_chunk::<{ Piece::HEADER }>()?;
        let (ends, numbers) = header.split_at(size_of::<Ends>());
        let number = |at: usize| {
            let bytes = numbers.get(at..)?.first_chunk()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        Some(Self {
            // SAFETY: the ends are plain numbers, which the kernel's program has written there; any bytes are
            // a value, and they need not be aligned to be copied.
            ends: unsafe { ends.as_ptr().cast::<Ends>().read_unaligned() },
            length: number(0)?,
            protocol: u8::try_from(number(4)?).ok()?,
            bytes,
        })
    }
}

/// Reads first bytes, and writes down names.
pub struct Namer {
    flows: HashMap<MapData, InMap<Ends>, InMap<Flow>>,
    quic_flows: HashMap<MapData, InMap<Ends>, InMap<QuicFlow>>,
    first_bytes: RingBuf<MapData>,
    read: HashMap<MapData, InMap<Ends>, InMap<BytesRead>>,
}

impl Namer {
    /// Returns what becomes readable when there are first bytes.
    #[must_use]
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.first_bytes.as_fd()
    }

    /// Takes the next piece of a flow and hands it over; returns whether there was one.
    pub fn take(&mut self, take: impl FnOnce(FirstBytes<'_>)) -> bool {
        let Some(item) = self.first_bytes.next() else {
            return false;
        };
        if let Some(first_bytes) = FirstBytes::new(&item) {
            take(first_bytes);
        }
        true
    }

    /// Returns what is known of a connection; `None`: it is not noted, or not any more.
    pub fn flow(&self, ends: &Ends) -> Result<Option<Flow>, DatapathError> {
        flow(&self.flows, ends)
    }

    /// Writes down what is known of a connection, unless it is closed.
    pub fn set(&mut self, ends: &Ends, flow: Flow) -> Result<(), DatapathError> {
        match self.flows.insert(InMap(*ends), InMap(flow), EXISTING) {
            Err(MapError::SyscallError(error))
                if error.io_error.kind() == io::ErrorKind::NotFound =>
            {
                Ok(())
            }
            written => written.map_err(error(SERVER_FLOWS)),
        }
    }

    /// Writes down which first bytes of a connection were read: its segments must have them at their places. If
    /// there is no room, those of one give way that were not compared for a long time.
    pub fn set_first_bytes(&mut self, ends: &Ends, bytes: &[u8]) -> Result<(), DatapathError> {
        let written = (self.read).insert(InMap(*ends), InMap(BytesRead::new(bytes)), 0);
        written.map_err(error(FIRST_BYTES_READ))
    }

    /// Returns whether it is known here which first bytes of a connection were read.
    pub fn knows_first_bytes(&self, ends: &Ends) -> Result<bool, DatapathError> {
        let read = known(&self.read, ends).map_err(error(FIRST_BYTES_READ))?;
        Ok(read.is_some())
    }

    /// Adds bytes of a connection that were read, from the place `place` among its first bytes on. `false`: nobody knows
    /// here any more which were read before.
    pub fn add_first_bytes(
        &mut self,
        ends: &Ends,
        place: u32,
        bytes: &[u8],
    ) -> Result<bool, DatapathError> {
        let Some(mut read) = known(&self.read, ends).map_err(error(FIRST_BYTES_READ))? else {
            return Ok(false);
        };
        read.write(place, bytes);
        let written = (self.read).insert(InMap(*ends), InMap(read), 0);
        written.map_err(error(FIRST_BYTES_READ))?;
        Ok(true)
    }

    /// Returns what is known of a QUIC flow; `None`: it is not noted, or not any more.
    pub fn quic_flow(&self, ends: &Ends) -> Result<Option<QuicFlow>, DatapathError> {
        known(&self.quic_flows, ends).map_err(error(QUIC_FLOWS))
    }

    /// Notes a QUIC flow, or something else about it. If there is no room, one of which nothing was heard for a
    /// long time gives way.
    pub fn set_quic(&mut self, ends: &Ends, flow: QuicFlow) -> Result<(), DatapathError> {
        let written = self.quic_flows.insert(InMap(*ends), InMap(flow), 0);
        written.map_err(error(QUIC_FLOWS))
    }

    /// Returns all noted connections, not at one moment.
    pub fn all(&self) -> Result<Vec<(Ends, Flow)>, DatapathError> {
        let (mut all, mut position) = (Vec::new(), None);
        loop {
            position =
                hash::read_some(&self.flows, position, &mut all).map_err(error(SERVER_FLOWS))?;
            if position.is_none() {
                return Ok(all);
            }
        }
    }
}

fn flow(
    flows: &HashMap<MapData, InMap<Ends>, InMap<Flow>>,
    ends: &Ends,
) -> Result<Option<Flow>, DatapathError> {
    known(flows, ends).map_err(error(SERVER_FLOWS))
}

fn known<F: Copy>(
    flows: &HashMap<MapData, InMap<Ends>, InMap<F>>,
    ends: &Ends,
) -> Result<Option<F>, MapError>
where
    InMap<F>: Pod,
{
    match flows.get(&InMap(*ends), 0) {
        Ok(InMap(flow)) => Ok(Some(flow)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(source) => Err(source),
    }
}
