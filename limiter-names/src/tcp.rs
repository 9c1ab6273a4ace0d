//! The first bytes of a TCP connection, from segments in any order.

use crate::{
    outcome::{FoundName, NoName, Stop},
    pieces::Pieces,
    stream,
};

/// A connection with first bytes still being collected.
#[derive(Debug)]
pub(crate) struct Tcp {
    pieces: Pieces,
    /// The sequence number of the first byte in `pieces`.
    start: u32,
    /// Whether `start` belongs to the connection's first byte. Without the SYN that is unknown: then the lowest number
    /// so far stands in.
    is_first: bool,
}

impl Tcp {
    /// Begins with the sequence number of a segment, and the number of the connection's first byte if it is known.
    pub(crate) fn new(sequence: u32, first: Option<u32>) -> Self {
        Self {
            pieces: Pieces::default(),
            start: first.unwrap_or(sequence),
            is_first: first.is_some(),
        }
    }

    /// Adds the bytes that a segment has among the first `most` bytes. Returns `false` if they differ from earlier
    /// bytes at the same positions.
    pub(crate) fn add(
        &mut self,
        sequence: u32,
        first: Option<u32>,
        payload: &[u8],
        most: u16,
    ) -> bool {
        if let Some(first) = first {
            self.begin_at(first, most);
        }
        match after(sequence, self.start) {
            Ok(offset) => self.pieces.insert(offset, payload, most),
            // Bytes before the first byte belong to another connection.
            Err(before) if self.is_first => {
                let rest = payload.get(before..).unwrap_or_default();
                self.pieces.insert(0, rest, most)
            }
            Err(before) if before <= usize::from(most) => {
                self.pieces.shift(before, most);
                self.start = sequence;
                self.pieces.insert(0, payload, most)
            }
            Err(_) => true,
        }
    }

    /// Sets the sequence number of the connection's first byte.
    fn begin_at(&mut self, first: u32, most: u16) {
        if first == self.start {
            self.is_first = true;
            return;
        }
        match after(self.start, first) {
            Ok(by) if !self.is_first => self.pieces.shift(by, most),
            // The ports are reused by a new connection.
            _ => self.pieces = Pieces::default(),
        }
        self.start = first;
        self.is_first = true;
    }

    /// The bytes from the first one on, without a gap; uses `room` to put them together.
    pub(crate) fn beginning<'t>(&'t self, room: &'t mut Vec<u8>) -> &'t [u8] {
        self.pieces.beginning(room)
    }

    /// Finds the name, as far as the bytes go; uses `room` to put them together.
    pub(crate) fn read(&self, most: u16, room: &mut Vec<u8>) -> Result<FoundName, Stop> {
        let is_all = self.pieces.is_full(most);
        read(self.pieces.beginning(room), self.is_first, is_all, most)
    }

    /// The reason why there is no name, if no more bytes come.
    pub(crate) fn why_not(&self, most: u16, room: &mut Vec<u8>) -> NoName {
        match read(self.pieces.beginning(room), self.is_first, true, most) {
            Err(Stop::No(NoName::NoBeginning)) => NoName::NoBeginning,
            _ => NoName::Incomplete,
        }
    }

    /// The allocated memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.pieces.memory()
    }
}

/// Finds the name in the first bytes of a connection, or in bytes that may be its first ones.
pub(crate) fn read(
    bytes: &[u8],
    is_first: bool,
    is_all: bool,
    most: u16,
) -> Result<FoundName, Stop> {
    match stream::read(bytes, is_all, most) {
        // Earlier bytes may still come, and make the whole readable.
        Err(Stop::No(NoName::Foreign | NoName::Malformed | NoName::Sslv2 | NoName::TooLong))
            if !is_first && !is_all =>
        {
            Err(Stop::More)
        }
        Err(Stop::No(NoName::Foreign | NoName::Malformed | NoName::Sslv2)) if !is_first => {
            Err(Stop::No(NoName::NoBeginning))
        }
        read => read,
    }
}

/// The distance from `other` to `sequence`: `Ok` if `sequence` is not before it, else `Err`.
fn after(sequence: u32, other: u32) -> Result<usize, usize> {
    let distance = sequence.wrapping_sub(other).cast_signed();
    let length = distance.unsigned_abs() as usize;
    if distance < 0 {
        Err(length)
    } else {
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u16 = 16;

    fn beginning(tcp: &Tcp) -> Vec<u8> {
        tcp.pieces.beginning(&mut Vec::new()).to_vec()
    }

    /// Adds pieces of `0123456789abcdef`, by their positions in it.
    fn collected(first: Option<u32>, pieces: &[(usize, usize)]) -> Vec<u8> {
        const TEXT: &[u8] = b"0123456789abcdef";
        // The sequence numbers wrap on the way.
        let start = u32::MAX - 3;
        let number = |offset: usize| start.wrapping_add(u32::try_from(offset).unwrap());
        let mut tcp = Tcp::new(number(pieces[0].0), first);
        for (from, to) in pieces {
            tcp.add(number(*from), first, &TEXT[*from..*to], MOST);
        }
        beginning(&tcp)
    }

    #[test]
    fn pieces_come_in_any_order() {
        let start = Some(u32::MAX - 3);
        for first in [start, None] {
            assert_eq!(collected(first, &[(0, 4), (4, 8)]), b"01234567");
            assert_eq!(collected(first, &[(4, 8), (0, 4)]), b"01234567");
            assert_eq!(
                collected(first, &[(8, 12), (0, 4), (4, 8)]),
                b"0123456789ab"
            );
            assert_eq!(collected(first, &[(4, 8), (0, 16)]), b"0123456789abcdef");
            assert_eq!(collected(first, &[(2, 6), (4, 9), (0, 3)]), b"012345678");
            assert_eq!(collected(first, &[(0, 4), (0, 4), (2, 3)]), b"0123");
        }
        assert_eq!(collected(start, &[(4, 8)]), b"");
        assert_eq!(collected(None, &[(4, 8)]), b"4567");
    }

    #[test]
    fn the_first_copy_of_a_byte_wins() {
        let mut tcp = Tcp::new(100, Some(100));
        assert!(tcp.add(102, None, b"cd", MOST));
        assert!(tcp.add(100, None, b"abcde", MOST));
        assert!(!tcp.add(100, None, b"abXde", MOST));
        assert!(!tcp.add(101, None, b"bcdYf", MOST));
        assert_eq!(beginning(&tcp), b"abcdef");
        // Bytes before the first one do not belong to the connection.
        assert!(tcp.add(99, None, b"?ab", MOST));
        assert!(!tcp.add(99, None, b"?aX", MOST));
    }

    #[test]
    fn what_is_before_the_first_byte_is_left() {
        let mut tcp = Tcp::new(95, Some(100));
        tcp.add(95, Some(100), b"-----ab", MOST);
        tcp.add(90, Some(100), b"--", MOST);
        assert_eq!(beginning(&tcp), b"ab");
        // The first number was unknown until the SYN came.
        let mut tcp = Tcp::new(102, None);
        tcp.add(102, None, b"cd", MOST);
        tcp.add(100, Some(100), b"ab", MOST);
        assert_eq!(beginning(&tcp), b"abcd");
        assert!(tcp.is_first);
        let mut tcp = Tcp::new(98, None);
        tcp.add(98, None, b"--ab", MOST);
        tcp.add(100, Some(100), b"ab", MOST);
        assert_eq!(beginning(&tcp), b"ab");
    }

    #[test]
    fn a_new_connection_begins_anew() {
        let mut tcp = Tcp::new(100, Some(100));
        tcp.add(100, Some(100), b"old", MOST);
        tcp.add(7000, Some(7000), b"new", MOST);
        assert_eq!(beginning(&tcp), b"new");
    }

    #[test]
    fn no_more_is_kept_than_is_read() {
        let mut tcp = Tcp::new(100, Some(100));
        tcp.add(110, None, &[b'x'; 100], MOST);
        tcp.add(100, None, &[b'x'; 10], MOST);
        assert_eq!(beginning(&tcp).len(), 16);
        assert!(tcp.pieces.is_full(MOST));
        // For any number of moves of the beginning.
        let mut tcp = Tcp::new(10_000, None);
        for step in 0..500 {
            tcp.add(10_000 - 7 * step, None, b"sevenby", MOST);
        }
        assert!(tcp.pieces.is_full(MOST));
        assert!(tcp.pieces.memory() < 100, "{}", tcp.pieces.memory());
        tcp.add(1 << 30, None, b"far", MOST);
        tcp.add(0, None, b"far", MOST);
    }
}
