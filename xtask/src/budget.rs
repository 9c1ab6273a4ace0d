//! `cargo xtask build-ebpf --budget`

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

use crate::{build_ebpf, built_targets::BuiltTargets, command, privileges};

/// Builds the objects and the measuring program, and becomes it.
///
/// The measuring program is separate: it embeds the eBPF objects, and xtask must build without an eBPF
/// toolchain.
pub(crate) fn run(json: bool) -> Result<ExitCode> {
    // Check first, before a long build.
    privileges::check_bpf("the budget is measured by loading BPF programs")?;
    build_ebpf::build()?;
    let mut cargo = command::cargo("build");
    cargo.args(["--package", "budget"]);
    let budget = BuiltTargets::by(&mut cargo, "the measuring program")?.program("budget")?;
    let mut command = Command::new(&budget);
    if json {
        command.arg("--json");
    }
    // Returns only on failure.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", budget.display()))
}
