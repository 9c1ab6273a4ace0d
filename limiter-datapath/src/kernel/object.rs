//! The compiled XDP program, inside the binary.

use aya::include_bytes_aligned;

/// The object without log statements.
pub static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/limiter.o"));

/// The same program with its log statements compiled in.
pub static OBJECT_WITH_LOG: &[u8] =
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/limiter-log.o"));

/// The name of the program that changes buckets for userspace.
pub(super) const PROGRAM_ORDER: &str = "limiter_order";

/// The name of the program that records handshakes.
pub(super) const PROGRAM_HANDSHAKES: &str = "limiter_handshakes";

/// The name of the program that counts connections for userspace.
pub(super) const PROGRAM_RECOUNT: &str = "limiter_recount";

/// The name of the program that changes the record of a source.
pub(super) const PROGRAM_CHANGE_SOURCE: &str = "limiter_change_source";
