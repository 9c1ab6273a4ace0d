//! Finds a toolchain for BPF and builds the XDP program's objects with it.
//!
//! Used by `cargo xtask`, and by the build scripts of the daemon and the benchmark, which embed the
//! objects. The BPF target has no prebuilt `core`, so a toolchain is a compiler with its library's
//! source ([`compiler`]) and `bpf-linker` ([`linker`]).

mod build_script;
pub mod compiler;
mod environment;
mod error;
mod installation;
pub mod linker;
mod objects;
mod rustup;
mod search_path;
mod strip;
mod toolchain;

pub use build_script::build_script;
pub use error::Error;
pub use installation::Installation;
pub use objects::{BenchObjects, Builder, Objects};
pub use search_path::SearchPath;
pub use toolchain::{MissingParts, Toolchain};
