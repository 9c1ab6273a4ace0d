//! Captures compressed by gzip or zstd, decompressed as a stream.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

/// The number of bytes that identify the format.
const MAGIC: usize = 4;

/// Returns a reader of the stream's decompressed content, or of the stream itself if it is not compressed.
pub fn decompressed(mut stream: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let mut magic = Vec::with_capacity(MAGIC);
    (&mut stream).take(MAGIC as u64).read_to_end(&mut magic)?;
    let kind = Kind::of(&magic);
    let whole = Cursor::new(magic).chain(stream);
    Ok(match kind {
        Kind::Plain => Box::new(whole),
        Kind::Gzip => Box::new(MultiGzDecoder::new(BufReader::new(whole))),
        Kind::Zstd => Box::new(Zstd::new(BufReader::new(whole))),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Gzip,
    Zstd,
}

impl Kind {
    fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or a skippable frame, as parallel compressors write it first.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// The content of all frames of a zstd stream. A frame may use at most 128 MiB of memory.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    /// Whether the decoder is inside a frame, or has still to check one.
    has_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Self {
        Self {
            source,
            decoder: FrameDecoder::new(),
            has_frame: false,
        }
    }

    /// Begins the next frame; returns false at the end of the stream.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => {
                    self.has_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = (&mut self.source).take(length.into());
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(damaged(error)),
            }
        }
        Ok(false)
    }

    /// Ends a frame; fails if its content does not match its checksum.
    fn end(&mut self) -> io::Result<()> {
        self.has_frame = false;
        let expected = self.decoder.get_checksum_from_data();
        if expected.is_some() && expected != self.decoder.get_calculated_checksum() {
            return Err(damaged("its checksum does not match"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            if self.has_frame && self.decoder.can_collect() > 0 {
                return self.decoder.read(bytes);
            }
            if self.has_frame && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.source, one);
                decoded.map_err(damaged)?;
                continue;
            }
            if self.has_frame {
                self.end()?;
            }
            if !self.begin()? {
                return Ok(0);
            }
        }
    }
}

fn damaged(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        decompressed(Box::new(Cursor::new(bytes)))?.read_to_end(&mut content)?;
        Ok(content)
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        compress_to_vec(content, CompressionLevel::Fastest)
    }

    /// A skippable frame, with three bytes.
    const SKIPPED: [u8; 11] = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];

    #[test]
    fn several_pieces_are_one_stream() {
        for compress in [gzip, zstd] {
            let pieces = [compress(b"one "), compress(b""), compress(b"two")];
            assert_eq!(read(pieces.concat()).unwrap(), b"one two");
        }
        let pieces = [&SKIPPED[..], &zstd(b"one"), &SKIPPED];
        assert_eq!(read(pieces.concat()).unwrap(), b"one");
    }

    #[test]
    fn damage_is_told() {
        let content: Vec<u8> = (0..100_000_u32)
            .flat_map(|n| (n.wrapping_mul(n) >> 7).to_le_bytes())
            .collect();
        for compress in [gzip, zstd] {
            let whole = compress(&content);
            assert_eq!(read(whole.clone()).unwrap(), content);
            assert!(read(whole[..whole.len() - 5].to_vec()).is_err());
            let mut damaged = whole.clone();
            damaged[whole.len() / 2] ^= 0x10;
            assert!(read(damaged).is_err());
        }
    }

    proptest! {
        #[test]
        fn what_is_compressed_is_read(content: Vec<u8>) {
            prop_assert_eq!(&read(gzip(&content)).unwrap(), &content);
            prop_assert_eq!(&read(zstd(&content)).unwrap(), &content);
        }

        #[test]
        fn no_bytes_panic(
            magic in prop::sample::select(vec![
                vec![], vec![0x1f, 0x8b, 8], vec![0x28, 0xb5, 0x2f, 0xfd], SKIPPED.to_vec(),
            ]),
            rest: Vec<u8>,
        ) {
            let _ = read([magic, rest].concat());
        }
    }
}
