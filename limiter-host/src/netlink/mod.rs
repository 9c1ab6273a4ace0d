//! Netlink dumps that are complete or fail.
//!
//! rtnetlink's own requests do not distinguish a complete dump from an aborted one: their streams end either
//! way. Here a dump counts only once the kernel has sent the final message and the table did not change
//! meanwhile.

pub mod addresses;
pub mod conntrack;
pub mod sockets;

use std::io;

use rtnetlink::{
    packet_core::{
        DecodeError, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
        NetlinkMessage, NetlinkPayload, NetlinkSerializable,
    },
    sys::{AsyncSocket as _, AsyncSocketExt as _, SocketAddr, TokioSocket},
};
use thiserror::Error;

/// The number of attempts if the table changes during a dump.
const TRIES: usize = 8;

/// `NLM_F_DUMP_INTR`: the table changed during the dump.
const DUMP_INTERRUPTED: u16 = 0x10;

/// The length of a message's header, in bytes.
const HEADER: usize = 16;

/// The kernel has not answered.
#[derive(Debug, Error)]
pub enum DumpError {
    /// No socket is available, or the kernel refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The response cannot be decoded.
    #[error("cannot decode the kernel's response: {0}")]
    Decode(#[from] DecodeError),
    /// Part of the dump was lost.
    #[error("the kernel's response is incomplete")]
    Incomplete,
    /// There are more rows than the caller accepts.
    #[error("there are more than {0}")]
    TooMany(usize),
    /// The table changed during each attempt.
    #[error("the kernel's response changes too fast")]
    Unsteady,
}

/// A socket to one netlink protocol. It is kept from one dump to the next, since a later one might find no free
/// descriptor.
pub struct Channel {
    protocol: isize,
    /// `None`: not opened yet, or the last dump was aborted and the rest of it may still arrive.
    socket: Option<TokioSocket>,
    sequence: u32,
    /// The most rows to keep of a dump.
    most: usize,
}

impl Channel {
    /// Makes a channel of a netlink protocol; it opens a socket when asked.
    #[must_use]
    pub const fn new(protocol: isize) -> Self {
        Self {
            protocol,
            socket: None,
            sequence: 0,
            most: usize::MAX,
        }
    }

    /// Aborts each dump of more rows than this.
    #[must_use]
    pub fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Opens the socket if there is none.
    pub fn open(&mut self) -> io::Result<()> {
        if self.socket.is_none() {
            self.socket = Some(TokioSocket::new(self.protocol)?);
        }
        Ok(())
    }

    /// Dumps a table. `attributes`: further attributes of the request, encoded. If the caller drops the future,
    /// the socket is closed.
    pub async fn dump<I, T>(
        &mut self,
        question: I,
        attributes: &[u8],
        mut keep: impl FnMut(I) -> Option<T>,
    ) -> Result<Vec<T>, DumpError>
    where
        I: NetlinkSerializable + NetlinkDeserializable,
    {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(question));
        message.finalize();
        self.open()?;
        let Some(mut socket) = self.socket.take() else {
            return Err(DumpError::Incomplete);
        };
        for _ in 0..TRIES {
            self.sequence = self.sequence.wrapping_add(1);
            message.header.sequence_number = self.sequence;
            let mut bytes = vec![0; message.buffer_len()];
            message.serialize(&mut bytes);
            bytes.extend_from_slice(attributes);
            let length = u32::try_from(bytes.len()).map_err(|_| DumpError::Incomplete)?;
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            socket.send_to(&bytes, &SocketAddr::new(0, 0)).await?;
            if let Some(all) =
                read_response(&mut socket, self.sequence, self.most, &mut keep).await?
            {
                self.socket = Some(socket);
                return Ok(all);
            }
        }
        Err(DumpError::Unsteady)
    }
}

/// Returns the rows of a dump that `keep` keeps; `None`: the table changed meanwhile.
async fn read_response<I: NetlinkDeserializable, T>(
    socket: &mut TokioSocket,
    sequence: u32,
    most: usize,
    keep: &mut impl FnMut(I) -> Option<T>,
) -> Result<Option<Vec<T>>, DumpError> {
    let mut all = Vec::new();
    let mut is_steady = true;
    loop {
        let (bytes, from) = socket.recv_from_full().await?;
        if from.port_number() != 0 {
            // Another process sent it, not the kernel.
            continue;
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (message, after) = next(rest)?;
            rest = after;
            let message = NetlinkMessage::<I>::deserialize(message)?;
            if message.header.sequence_number != sequence {
                continue;
            }
            is_steady &= message.header.flags & DUMP_INTERRUPTED == 0;
            match message.payload {
                NetlinkPayload::InnerMessage(message) => {
                    all.extend(keep(message));
                    if all.len() > most {
                        return Err(DumpError::TooMany(most));
                    }
                }
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(-done.code).into());
                }
                NetlinkPayload::Done(_) => return Ok(is_steady.then_some(all)),
                NetlinkPayload::Error(error) => return Err(error.to_io().into()),
                NetlinkPayload::Noop => {}
                _ => return Err(DumpError::Incomplete),
            }
        }
    }
}

/// Splits the first message off.
fn next(bytes: &[u8]) -> Result<(&[u8], &[u8]), DumpError> {
    let length = bytes.first_chunk().copied().map(u32::from_ne_bytes);
    let length = length.and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| (HEADER..=bytes.len()).contains(length));
    let length = length.ok_or(DumpError::Incomplete)?;
    // Messages begin at multiples of four bytes.
    let after = length.next_multiple_of(4).min(bytes.len());
    Ok((&bytes[..length], &bytes[after..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_where_they_say() {
        let message = |length: u32, bytes: usize| {
            let mut all = vec![7; bytes];
            all[..4].copy_from_slice(&length.to_ne_bytes());
            all
        };
        let lengths = |bytes: &[u8]| next(bytes).ok().map(|(one, rest)| (one.len(), rest.len()));
        assert_eq!(lengths(&message(16, 16)), Some((16, 0)));
        assert_eq!(lengths(&message(18, 36)), Some((18, 16)));
        // The last message may lack its padding.
        assert_eq!(lengths(&message(18, 18)), Some((18, 0)));
        for (length, bytes) in [(15, 16), (17, 16), (0, 32), (u32::MAX, 32)] {
            assert_eq!(
                lengths(&message(length, bytes)),
                None,
                "{length} of {bytes}"
            );
        }
        assert_eq!(lengths(&[16, 0, 0]), None);
    }
}
