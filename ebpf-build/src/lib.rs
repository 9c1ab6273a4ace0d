//! Finds a toolchain for BPF and builds the XDP program's objects with it.
//!
//! Used by `cargo xtask`, and by the daemon's build script, which embeds the objects. The BPF
//! target has no prebuilt `core`, so a toolchain is a compiler that has its library's source
//! ([`compiler`]) and `bpf-linker` ([`linker`]).

pub mod compiler;
mod environment;
mod error;
pub mod linker;
mod objects;
mod places;
mod rustup;
mod toolchain;

pub use error::Error;
pub use objects::{BenchObjects, Builder, Objects};
pub use places::Places;
pub use toolchain::{Missing, Toolchain};
