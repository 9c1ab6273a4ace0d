//! The maps of server names. The kernel's programs record the connections. Userspace writes the names of connections,
//! and records QUIC flows with their names.

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
    policy::Features,
    server_name::{FirstBytes as BytesRead, FlowRecord, Loss, Piece, QuicFlow},
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

/// The maximum number of recorded connections under a policy that asks for names. Further connections get no name.
const CAPACITY: u32 = 1 << 18;

/// The maximum number of QUIC flows with names under a policy that counts them. Beyond it, the flow that was idle
/// longest loses its name. Equals the number of flows that the reader of names follows.
const QUIC_CAPACITY: u32 = 1 << 17;

/// The number of connections with their read bytes known to programs, under a policy that asks for names: 34 MB. The
/// least recently compared connection is evicted, and stored again when it is missed.
const READ_CAPACITY: u32 = 1 << 13;

/// The size in bytes of the ring of first bytes, under such a policy and any other: whole pages, and a power of two.
const ROOM: u32 = 1 << 21;
const LEAST_ROOM: u32 = 1 << 16;

/// `BPF_EXIST`, from linux/bpf.h.
const EXISTING: u64 = 2;

/// The number of connections that a policy with these features records; 0: none.
pub(in crate::kernel) const fn capacity(features: &Features) -> u32 {
    if features.by_server_name == 0 {
        0
    } else {
        CAPACITY
    }
}

/// The number of QUIC flows that a policy with these server names records; 0: none.
pub(in crate::kernel) const fn quic_capacity(names: &ServerNames) -> u32 {
    if names.are_of_quic() {
        QUIC_CAPACITY
    } else {
        0
    }
}

/// The number of entries of the named map for these capacities; `None`: the map is not one of these.
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
    flows: HashMap<MapData, InMap<Ends>, InMap<FlowRecord>>,
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

    pub(in crate::kernel) fn maps(&self) -> [(&'static str, &MapData); 5] {
        [
            (SERVER_FLOWS, self.flows.map()),
            (QUIC_FLOWS, self.quic_flows.map()),
            (FIRST_BYTES, &self.first_bytes),
            (FIRST_BYTES_LOST, self.lost.map()),
            (FIRST_BYTES_READ, self.read.map()),
        ]
    }

    /// The number of segments or datagrams that were not reported for that reason, over all CPUs.
    pub fn lost(&self, loss: Loss) -> Result<u64, DatapathError> {
        sum(&self.lost, loss as u32).map_err(error(FIRST_BYTES_LOST))
    }

    /// A [`Namer`] with its own descriptors. Use only one at a time: it misses the pieces that another one reads.
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

    /// The record of a connection; `None`: it is not recorded, or no longer.
    pub fn flow(&self, ends: &Ends) -> Result<Option<FlowRecord>, DatapathError> {
        flow(&self.flows, ends)
    }

    /// Records a connection.
    #[cfg(feature = "testing")]
    pub fn add(&self, ends: Ends, flow: FlowRecord) -> Result<(), DatapathError> {
        let written = hash::write(&self.flows, &[InMap(ends)], &[InMap(flow)]);
        written.map_err(error(SERVER_FLOWS))
    }

    /// Records the read first bytes of a connection.
    #[cfg(feature = "testing")]
    pub fn add_first_bytes(&self, ends: Ends, bytes: BytesRead) -> Result<(), DatapathError> {
        let written = hash::write(&self.read, &[InMap(ends)], &[InMap(bytes)]);
        written.map_err(error(FIRST_BYTES_READ))
    }

    /// Records a QUIC flow.
    #[cfg(feature = "testing")]
    pub fn add_quic(&self, ends: Ends, flow: QuicFlow) -> Result<(), DatapathError> {
        let written = hash::write(&self.quic_flows, &[InMap(ends)], &[InMap(flow)]);
        written.map_err(error(QUIC_FLOWS))
    }
}

/// First bytes of a flow, as the kernel's programs report them.
#[derive(Clone, Copy, Debug)]
pub struct FirstBytes<'p> {
    /// The ends of the flow.
    pub ends: Ends,
    /// The number of its IP protocol: TCP or UDP.
    pub protocol: u8,
    /// The length in bytes of the segment with its TCP header, or of the datagram's content.
    pub length: u32,
    /// The reported bytes: of the segment with its TCP header, or of the datagram's content.
    pub bytes: &'p [u8],
}

impl<'p> FirstBytes<'p> {
    /// Parses a piece; `None`: no program writes such a piece.
    fn new(piece: &'p [u8]) -> Option<Self> {
        let (header, bytes) = piece.split_first_chunk::<{ Piece::HEADER }>()?;
        let (ends, numbers) = header.split_at(size_of::<Ends>());
        let number = |at: usize| {
            let bytes = numbers.get(at..)?.first_chunk()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        Some(Self {
            // SAFETY: the ends are plain numbers written there by the kernel's program; any bytes are a value, and
            // copying them needs no alignment.
            ends: unsafe { ends.as_ptr().cast::<Ends>().read_unaligned() },
            length: number(0)?,
            protocol: u8::try_from(number(4)?).ok()?,
            bytes,
        })
    }
}

/// Reads first bytes, and writes down names.
pub struct Namer {
    flows: HashMap<MapData, InMap<Ends>, InMap<FlowRecord>>,
    quic_flows: HashMap<MapData, InMap<Ends>, InMap<QuicFlow>>,
    first_bytes: RingBuf<MapData>,
    read: HashMap<MapData, InMap<Ends>, InMap<BytesRead>>,
}

impl Namer {
    /// A descriptor that becomes readable when first bytes arrive.
    #[must_use]
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.first_bytes.as_fd()
    }

    /// Takes the next piece of a flow and passes it to `take`; returns whether there was one.
    pub fn take(&mut self, take: impl FnOnce(FirstBytes<'_>)) -> bool {
        let Some(item) = self.first_bytes.next() else {
            return false;
        };
        if let Some(first_bytes) = FirstBytes::new(&item) {
            take(first_bytes);
        }
        true
    }

    /// The record of a connection; `None`: it is not recorded, or no longer.
    pub fn flow(&self, ends: &Ends) -> Result<Option<FlowRecord>, DatapathError> {
        flow(&self.flows, ends)
    }

    /// Writes the record of a connection, unless it is closed.
    pub fn set(&mut self, ends: &Ends, flow: FlowRecord) -> Result<(), DatapathError> {
        match self.flows.insert(InMap(*ends), InMap(flow), EXISTING) {
            Err(MapError::SyscallError(error))
                if error.io_error.kind() == io::ErrorKind::NotFound =>
            {
                Ok(())
            }
            written => written.map_err(error(SERVER_FLOWS)),
        }
    }

    /// Writes the read first bytes of a connection: its segments must have the same bytes at their positions. Without
    /// room, evicts the least recently compared connection.
    pub fn set_first_bytes(&mut self, ends: &Ends, bytes: &[u8]) -> Result<(), DatapathError> {
        let written = (self.read).insert(InMap(*ends), InMap(BytesRead::new(bytes)), 0);
        written.map_err(error(FIRST_BYTES_READ))
    }

    /// Whether the read first bytes of a connection are stored here.
    pub fn has_first_bytes(&self, ends: &Ends) -> Result<bool, DatapathError> {
        let read = find(&self.read, ends).map_err(error(FIRST_BYTES_READ))?;
        Ok(read.is_some())
    }

    /// Adds read bytes of a connection, from `position` among its first bytes on. `false`: the earlier bytes
    /// are no longer stored here.
    pub fn add_first_bytes(
        &mut self,
        ends: &Ends,
        position: u32,
        bytes: &[u8],
    ) -> Result<bool, DatapathError> {
        let Some(mut read) = find(&self.read, ends).map_err(error(FIRST_BYTES_READ))? else {
            return Ok(false);
        };
        read.write(position, bytes);
        let written = (self.read).insert(InMap(*ends), InMap(read), 0);
        written.map_err(error(FIRST_BYTES_READ))?;
        Ok(true)
    }

    /// The record of a QUIC flow; `None`: it is not recorded, or no longer.
    pub fn quic_flow(&self, ends: &Ends) -> Result<Option<QuicFlow>, DatapathError> {
        find(&self.quic_flows, ends).map_err(error(QUIC_FLOWS))
    }

    /// Records or updates a QUIC flow. Without room, evicts a flow that was idle for a long time.
    pub fn set_quic(&mut self, ends: &Ends, flow: QuicFlow) -> Result<(), DatapathError> {
        let written = self.quic_flows.insert(InMap(*ends), InMap(flow), 0);
        written.map_err(error(QUIC_FLOWS))
    }

    /// All recorded connections, not at one moment.
    pub fn all(&self) -> Result<Vec<(Ends, FlowRecord)>, DatapathError> {
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
    flows: &HashMap<MapData, InMap<Ends>, InMap<FlowRecord>>,
    ends: &Ends,
) -> Result<Option<FlowRecord>, DatapathError> {
    find(flows, ends).map_err(error(SERVER_FLOWS))
}

fn find<F: Copy>(
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
