//! The compiled XDP program, inside the binary.

use std::{io::Read as _, sync::LazyLock};

use aya::include_bytes_aligned;
use flate2::read::GzDecoder;

/// The object without log statements.
pub static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/limiter.o"));

/// The same program with its log statements compiled in, compressed: few need it, and it would be a
/// tenth of the binary.
static COMPRESSED_WITH_LOG: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/limiter-log.o.gz"));

/// Returns the same program with its log statements compiled in.
#[must_use]
pub fn object_with_log() -> &'static [u8] {
    static OBJECT_WITH_LOG: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut object = Vec::new();
        let read = GzDecoder::new(COMPRESSED_WITH_LOG).read_to_end(&mut object);
        read.expect("the build has compressed it");
        object
    });
    &OBJECT_WITH_LOG
}

/// The name of the program that changes buckets for userspace.
pub(super) const PROGRAM_ORDER: &str = "limiter_order";

/// The name of the program that notes handshakes.
pub(super) const PROGRAM_HANDSHAKES: &str = "limiter_handshakes";

/// The name of the program that counts connections for userspace.
pub(super) const PROGRAM_RECOUNT: &str = "limiter_recount";

/// The name of the program that changes what is known of a source.
pub(super) const PROGRAM_KNOW: &str = "limiter_know";
