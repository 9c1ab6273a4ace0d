//! Builds the targets so that libFuzzer sees which code an input reaches.

use std::process::Command;

use anyhow::Result;

use super::place;
use crate::{built::Built, command};

/// The flags of cargo-fuzz without sanitizers, none of which needs a nightly compiler.
const FLAGS: [&str; 8] = [
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // The linker would merge, and so lose, counters of two units of one crate.
    "-Ccodegen-units=1",
];

/// How fast the targets run, and how long their build takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Profile {
    /// For seconds of fuzzing: built in two thirds of the time.
    Dev,
    /// For more.
    Fuzz,
}

/// Builds the named targets.
pub(super) fn build(targets: &[String], profile: Profile) -> Result<Built> {
    Built::by(&mut command(targets, profile), "a fuzz target")
}

/// Returns the command that builds the named targets.
pub(super) fn command(targets: &[String], profile: Profile) -> Command {
    let mut cargo = command::cargo("build");
    cargo
        .args(["--package", "limiter-fuzz", "--profile"])
        .arg(match profile {
            Profile::Dev => "dev",
            Profile::Fuzz => "fuzz",
        })
        // With any target named, even the host's own, the flags do not apply to build scripts and
        // procedural macros, which have no libFuzzer to report to.
        .args(["--target", "host-tuple", "--target-dir"])
        .arg(place::output())
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    for target in targets {
        cargo.args(["--bin", target]);
    }
    cargo
}
