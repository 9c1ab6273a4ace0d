//! Builds the objects that the benchmark alone loads.

use std::process::ExitCode;

use ebpf_build::{Builder, build_script};

fn main() -> ExitCode {
    build_script(
        &["dev/bench-common", "dev/bench-ebpf"],
        Builder::build_bench,
    )
}
