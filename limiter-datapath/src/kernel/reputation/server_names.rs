//! The maps of connections' server names: the kernel's programs note the connections, userspace their names.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use aya::maps::{HashMap, IterableMap as _, Map, MapData, MapError, PerCpuArray, RingBuf};
use limiter_common::{
    connection::Ends,
    policy::Shape,
    server_name::{Flow, Loss, Piece},
};

use crate::kernel::{
    DatapathError, hash,
    map::{again, error, sum},
    pod::InMap,
};

pub(in crate::kernel) const SERVER_FLOWS: &str = "SERVER_FLOWS";
pub(in crate::kernel) const FIRST_BYTES: &str = "FIRST_BYTES";
pub(super) const FIRST_BYTES_LOST: &str = "FIRST_BYTES_LOST";

/// How many connections are noted at once under a policy that asks for names: more have none.
const CAPACITY: u32 = 1 << 18;

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

/// Returns how many entries the named map has if so many connections are noted; `None`: it is none of
/// these.
pub(super) fn entries(map: &str, capacity: u32) -> Option<u32> {
    match map {
        SERVER_FLOWS => Some(capacity),
        FIRST_BYTES if capacity == 0 => Some(LEAST_ROOM),
        FIRST_BYTES => Some(ROOM),
        _ => None,
    }
}

/// Holds the connections that limits may count by their names, and their first bytes.
pub struct ServerNameMaps {
    flows: HashMap<MapData, InMap<Ends>, InMap<Flow>>,
    first_bytes: MapData,
    lost: PerCpuArray<MapData, InMap<u64>>,
}

impl ServerNameMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let flows = open(SERVER_FLOWS)?;
        Ok(Self {
            flows: flows.try_into().map_err(error(SERVER_FLOWS))?,
            first_bytes: match open(FIRST_BYTES)? {
                Map::RingBuf(data) => data,
                _ => return Err(DatapathError::NoMap(FIRST_BYTES)),
            },
            lost: open(FIRST_BYTES_LOST)?
                .try_into()
                .map_err(error(FIRST_BYTES_LOST))?,
        })
    }

    /// Returns the maps with their names.
    pub(in crate::kernel) fn maps(&self) -> [(&'static str, &MapData); 3] {
        [
            (SERVER_FLOWS, self.flows.map()),
            (FIRST_BYTES, &self.first_bytes),
            (FIRST_BYTES_LOST, self.lost.map()),
        ]
    }

    /// Returns how many segments were not told, for a reason, by all CPUs' counts.
    pub fn lost(&self, loss: Loss) -> Result<u64, DatapathError> {
        sum(&self.lost, loss as u32).map_err(error(FIRST_BYTES_LOST))
    }

    /// Returns the one who reads first bytes and writes down names, by descriptors of its own. There must be one
    /// at a time: it does not see what another has read.
    pub fn namer(&self) -> Result<Namer, DatapathError> {
        let flows = again(self.flows.map()).map_err(error(SERVER_FLOWS))?;
        let first_bytes = again(&self.first_bytes).map_err(error(FIRST_BYTES))?;
        Ok(Namer {
            flows: flows.try_into().map_err(error(SERVER_FLOWS))?,
            first_bytes: first_bytes.try_into().map_err(error(FIRST_BYTES))?,
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
}

/// Reads first bytes, and writes down names.
pub struct Namer {
    flows: HashMap<MapData, InMap<Ends>, InMap<Flow>>,
    first_bytes: RingBuf<MapData>,
}

impl Namer {
    /// Returns what becomes readable when there are first bytes.
    #[must_use]
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.first_bytes.as_fd()
    }

    /// Takes the next piece of a connection and hands over its ends, the segment's length with its TCP header,
    /// and the bytes of the segment that there are; returns whether there was one.
    pub fn take(&mut self, take: impl FnOnce(Ends, u32, &[u8])) -> bool {
        let Some(item) = self.first_bytes.next() else {
            return false;
        };
        if let Some((header, segment)) = item.split_first_chunk::<{ Piece::HEADER }>() {
            // SAFETY: the ends are plain numbers, which the kernel's program has written there; any bytes are
            // a value, and they need not be aligned to be copied.
            let ends = unsafe { header.as_ptr().cast::<Ends>().read_unaligned() };
            let length = header[size_of::<Ends>()..].first_chunk();
            take(
                ends,
                length.map_or(0, |bytes| u32::from_ne_bytes(*bytes)),
                segment,
            );
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
    match flows.get(&InMap(*ends), 0) {
        Ok(InMap(flow)) => Ok(Some(flow)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(source) => Err(error(SERVER_FLOWS)(source)),
    }
}
