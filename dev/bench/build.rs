//! Builds the objects for the benchmark alone.

use std::process::ExitCode;

use ebpf_build::{Builder, build_script};

fn main() -> ExitCode {
    build_script(
        &["dev/bench-common", "dev/bench-ebpf"],
        Builder::build_bench,
    )
}
