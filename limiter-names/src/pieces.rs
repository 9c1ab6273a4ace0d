//! The first bytes of a stream, put together from pieces that come in any order.

/// The bytes received so far of a stream's beginning.
///
/// The bytes are kept in order of arrival, so memory is used only for received bytes, not for gaps, which cost a client
/// nothing.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    /// The positions of the bytes: sorted, without overlaps.
    runs: Vec<Run>,
}

/// Consecutive bytes of the stream, kept one behind the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The position of the first byte in the stream.
    offset: u16,
    /// Its position among the kept bytes.
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
    /// Adds the missing bytes that a piece has among the first `most` bytes.
    ///
    /// The first copy of a byte wins, as in network stacks for acknowledged or queued bytes, and bytes already read do
    /// not change afterwards. Returns whether repeated bytes agree with the first copy.
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

    /// Whether a piece agrees with a run in their common part.
    fn agrees(&self, run: Run, offset: usize, data: &[u8]) -> bool {
        let start = run.start().max(offset);
        let end = run.end().min(offset + data.len());
        let kept = |position| run.at() + (position - run.start());
        start >= end || data[start - offset..end - offset] == self.bytes[kept(start)..kept(end)]
    }

    /// Adds bytes in the gap before the run at `index`; returns the rise of that run's index.
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

    /// Moves all bytes up by `by` positions; drops bytes that would move to `most` or above.
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

    /// The number of bytes from the stream's first one on, without a gap.
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

    /// The bytes from the first one on, without a gap; copied into `room` if they came in another order.
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

    /// Whether no more bytes are taken.
    pub(crate) fn is_full(&self, most: u16) -> bool {
        self.bytes.len() >= usize::from(most)
    }

    /// The allocated memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.runs.capacity() * size_of::<Run>()
    }
}
