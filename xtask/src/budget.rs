//! `cargo xtask build-ebpf --budget`

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

use crate::{build_ebpf, built::Built, command, privileges};

/// Builds the objects, and the program that measures them, which it becomes.
///
/// That program is not part of this one: what loads the objects has them inside, and this one
/// has to build where there is no eBPF toolchain yet.
pub(crate) fn run(json: bool) -> Result<ExitCode> {
    // First, so that nobody waits for a build to learn it.
    privileges::check_bpf("the budget is measured by loading BPF programs")?;
    build_ebpf::build()?;
    let mut cargo = command::cargo("build");
    cargo.args(["--package", "budget"]);
    let budget = Built::by(&mut cargo, "the measuring program")?.program("budget")?;
    let mut command = Command::new(&budget);
    if json {
        command.arg("--json");
    }
    // Only returns if it fails.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", budget.display()))
}
