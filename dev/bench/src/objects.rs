//! The compiled programs, embedded in the binary.

use aya::include_bytes_aligned;

/// The limiter, in a build that draws sources and passes no packet on.
pub(crate) static LIMITER: &[u8] =
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/limiter-bench.o"));

/// The benchmark's own programs.
pub(crate) static BENCH: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/bench.o"));
