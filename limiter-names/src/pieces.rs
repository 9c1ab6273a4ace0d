//! The first bytes of a stream, put together from pieces that come in any order.

/// What is there of the first bytes of a stream.
///
/// The bytes are kept in the order in which they come, so memory is taken for bytes that are there and
/// not for gaps, which a client can make for nothing.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    /// Where they belong: sorted, without overlaps.
    runs: Vec<Run>,
}

/// Consecutive bytes of the stream, kept one behind the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The place of the first in the stream.
    offset: u16,
    /// Its place among the bytes kept.
    at: u16,
    length: u16,
}

impl Run {
    const fn start(self) -> usize {
        self.offset as usize
    }

    const fn end(self) -> usize {
        self.offset as usize + self.length as usize
    }

    const fn at(self) -> usize {
        self.at as usize
    }
}

impl Pieces {
    /// Adds what a piece brings of the first `most` bytes and is not there yet.
    ///
    /// The first copy of a byte wins. So do network stacks have it for what they have acknowledged or
    /// queued, and what the reader has looked at does not change afterwards. Returns whether what is there
    /// twice is the same.
    pub(crate) fn insert(&mut self, offset: usize, data: &[u8], most: u16) -> bool {
        let end = offset.saturating_add(data.len()).min(usize::from(most));
        let mut index = self.runs.partition_point(|run| run.end() <= offset);
        let mut from = offset;
        let mut agrees = true;
        while from < end {
            let next = self.runs.get(index).copied();
            let gap_end = next.map_or(end, |run| run.start().min(end));
            if from < gap_end {
                index += self.add(index, from, &data[from - offset..gap_end - offset], most);
            }
            if let Some(run) = next {
                agrees &= self.agrees(run, offset, data);
            }
            from = next.map_or(end, Run::end);
            index += 1;
        }
        agrees
    }

    /// Returns whether a piece has the bytes of a run, as far as it has any at their places.
    fn agrees(&self, run: Run, offset: usize, data: &[u8]) -> bool {
        let start = run.start().max(offset);
        let end = run.end().min(offset + data.len());
        let kept = |place| run.at() + (place - run.start());
        start >= end || data[start - offset..end - offset] == self.bytes[kept(start)..kept(end)]
    }

    /// Adds bytes in the gap before the run at `index`; returns by how much its index rises.
    fn add(&mut self, index: usize, offset: usize, data: &[u8], most: u16) -> usize {
        let room = usize::from(most).saturating_sub(self.bytes.len());
        let data = &data[..data.len().min(room)];
        let (Ok(offset), Ok(at), Ok(length)) = (
            u16::try_from(offset),
            u16::try_from(self.bytes.len()),
            u16::try_from(data.len()),
        ) else {
            return 0;
        };
        if length == 0 {
            return 0;
        }
        self.bytes.reserve_exact(data.len());
        self.bytes.extend_from_slice(data);
        let before = index
            .checked_sub(1)
            .and_then(|before| self.runs.get_mut(before));
        if let Some(run) = before
            && run.end() == usize::from(offset)
            && run.at() + usize::from(run.length) == usize::from(at)
        {
            run.length += length;
            return 0;
        }
        let run = Run { offset, at, length };
        self.runs.reserve_exact(1);
        self.runs.insert(index, run);
        1
    }

    /// Moves all bytes to places that are larger by `by`; forgets where those belong that get places
    /// from `most` on.
    pub(crate) fn shift(&mut self, by: usize, most: u16) {
        let most = usize::from(most);
        self.runs.retain_mut(|run| {
            let start = run.start() + by;
            let length = usize::from(run.length).min(most.saturating_sub(start));
            run.length = u16::try_from(length).unwrap_or(0);
            run.offset = u16::try_from(start).unwrap_or(u16::MAX);
            length > 0
        });
    }

    /// Returns how many bytes there are from the stream's first one on, without a gap.
    pub(crate) fn ready(&self) -> usize {
        let mut ready = 0;
        for run in &self.runs {
            if run.start() != ready {
                break;
            }
            ready = run.end();
        }
        ready
    }

    /// Returns these bytes; copies them into `room` if they came in another order.
    pub(crate) fn beginning<'p>(&'p self, room: &'p mut Vec<u8>) -> &'p [u8] {
        match self.runs.first() {
            Some(first) if first.start() == 0 && first.end() == self.ready() => {
                &self.bytes[first.at()..first.at() + usize::from(first.length)]
            }
            _ => {
                room.clear();
                for run in &self.runs {
                    if run.start() != room.len() {
                        break;
                    }
                    room.extend_from_slice(
                        &self.bytes[run.at()..run.at() + usize::from(run.length)],
                    );
                }
                room
            }
        }
    }

    /// Returns whether no more bytes are taken.
    pub(crate) fn is_full(&self, most: u16) -> bool {
        self.bytes.len() >= usize::from(most)
    }

    /// Returns the memory that it has allocated, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.runs.capacity() * size_of::<Run>()
    }
}
