//! Builds the targets with libFuzzer's instrumentation, which reports the code that an input reaches.

use std::process::Command;

use anyhow::Result;

use super::paths;
use crate::{built_targets::BuiltTargets, command};

/// cargo-fuzz's flags without sanitizers, so that a stable compiler suffices.
const FLAGS: [&str; 8] = [
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // With several units, the linker would merge their counters and lose some.
    "-Ccodegen-units=1",
];

/// The trade between the targets' speed and their build time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Profile {
    /// For seconds of fuzzing: the build takes two thirds of the time.
    Dev,
    /// For longer fuzzing.
    Fuzz,
}

pub(super) fn build(targets: &[String], profile: Profile) -> Result<BuiltTargets> {
    BuiltTargets::by(&mut command(targets, profile), "a fuzz target")
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
        // With `--target`, even for the host itself, the flags do not apply to build scripts and procedural
        // macros, which have no libFuzzer to report to.
        .args(["--target", "host-tuple", "--target-dir"])
        .arg(paths::output())
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    for target in targets {
        cargo.args(["--bin", target]);
    }
    cargo
}
