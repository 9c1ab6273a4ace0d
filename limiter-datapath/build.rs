//! Builds the XDP program's objects, which this crate embeds.

use std::process::ExitCode;

use ebpf_build::{Builder, build_script};

fn main() -> ExitCode {
    build_script(&[], Builder::build)
}
