//! A stream of bytes that is read piece by piece and tracks its offset.

use std::io::{self, BufReader, Read};

use super::CaptureError;

/// The read buffer's size in bytes, large enough that millions of packets need few system calls.
const BUFFER: usize = 256 * 1024;

pub(super) struct Input<R> {
    reader: BufReader<R>,
    offset: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(BUFFER, reader),
            offset: 0,
        }
    }

    /// Reads the start of the next item; `None` at the end of the stream. `part` names the item in
    /// errors.
    pub(super) fn start<const N: usize>(
        &mut self,
        part: &'static str,
    ) -> Result<Option<[u8; N]>, CaptureError> {
        let mut bytes = [0; N];
        match self.fill(&mut bytes)? {
            0 => Ok(None),
            read if read == N => Ok(Some(bytes)),
            _ => Err(self.cut_short(part)),
        }
    }

    /// Reads the next bytes of an item.
    pub(super) fn array<const N: usize>(
        &mut self,
        part: &'static str,
    ) -> Result<[u8; N], CaptureError> {
        self.start(part)?.ok_or_else(|| self.cut_short(part))
    }

    /// Replaces `bytes` with the next `length` bytes of an item.
    pub(super) fn bytes(
        &mut self,
        bytes: &mut Vec<u8>,
        length: usize,
        part: &'static str,
    ) -> Result<(), CaptureError> {
        bytes.resize(length, 0);
        if self.fill(bytes)? < length {
            return Err(self.cut_short(part));
        }
        Ok(())
    }

    /// Skips `length` bytes of an item.
    pub(super) fn skip(&mut self, length: u64, part: &'static str) -> Result<(), CaptureError> {
        if length == 0 {
            return Ok(());
        }
        let mut rest = (&mut self.reader).take(length);
        let skipped = io::copy(&mut rest, &mut io::sink()).map_err(CaptureError::Read)?;
        self.offset += skipped;
        if skipped < length {
            return Err(self.cut_short(part));
        }
        Ok(())
    }

    /// Fills `bytes` as far as the stream goes; returns the number of bytes read.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, CaptureError> {
        let mut read = 0;
        while read < bytes.len() {
            match self.reader.read(&mut bytes[read..]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(CaptureError::Read(error)),
            }
        }
        self.offset += read as u64;
        Ok(read)
    }

    fn cut_short(&self, part: &'static str) -> CaptureError {
        CaptureError::CutShort(self.offset, part)
    }

    pub(super) fn damaged(&self, part: &'static str) -> CaptureError {
        CaptureError::Damaged(self.offset, part)
    }
}
