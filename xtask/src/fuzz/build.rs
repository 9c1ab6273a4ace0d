//! Builds the targets so that libFuzzer sees which code an input reaches.

use anyhow::Result;

use super::place;
use crate::{built::Built, command};

/// What cargo-fuzz does without sanitizers: nothing of it needs a nightly compiler.
const FLAGS: [&str; 8] = [
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // Counters of two units of one crate would be merged by the linker, and lost.
    "-Ccodegen-units=1",
];

/// Builds the named targets.
pub(super) fn build(targets: &[String]) -> Result<Built> {
    let mut cargo = command::cargo("build");
    cargo
        .args(["--package", "limiter-fuzz", "--profile", "fuzz"])
        // With a target named, even the host's own, the flags do not reach build scripts and
        // procedural macros, which have no libFuzzer to report to.
        .args(["--target", "host-tuple", "--target-dir"])
        .arg(place::output())
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    for target in targets {
        cargo.args(["--bin", target]);
    }
    Built::by(&mut cargo, "a fuzz target")
}
