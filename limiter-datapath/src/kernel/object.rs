//! The compiled XDP program, inside the binary.

use std::{io::Read as _, sync::LazyLock};

use flate2::read::GzDecoder;

/// Returns the object without log statements.
#[must_use]
pub fn object() -> &'static [u8] {
    static OBJECT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let compressed = include_bytes!(concat!(env!("OUT_DIR"), "/limiter.o.gz"));
        decompressed(compressed)
    });
    &OBJECT
}

/// Returns the same program with its log statements compiled in.
#[must_use]
pub fn object_with_log() -> &'static [u8] {
    static OBJECT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let compressed = include_bytes!(concat!(env!("OUT_DIR"), "/limiter-log.o.gz"));
        decompressed(compressed)
    });
    &OBJECT
}

/// Returns an object, which would be a tenth of the binary if it were not compressed there.
fn decompressed(compressed: &[u8]) -> Vec<u8> {
    let mut object = Vec::new();
    let read = GzDecoder::new(compressed).read_to_end(&mut object);
    read.expect("the build has compressed it");
    object
}

/// The name of the program that changes buckets for userspace.
pub(super) const PROGRAM_ORDER: &str = "limiter_order";

/// The name of the program that notes handshakes.
pub(super) const PROGRAM_HANDSHAKES: &str = "limiter_handshakes";

/// The name of the program that counts connections for userspace.
pub(super) const PROGRAM_RECOUNT: &str = "limiter_recount";

/// The name of the program that changes what is known of a source.
pub(super) const PROGRAM_KNOW: &str = "limiter_know";
