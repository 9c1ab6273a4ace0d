//! `cargo xtask build-ebpf`

use std::process::{Command, ExitCode};

use anyhow::Result;
use ebpf_build::{Builder, Objects};

use crate::{command, object, setup, workspace};

pub(crate) fn run(json: bool) -> Result<ExitCode> {
    let objects = build()?;
    let descriptions = [
        object::describe(&objects.plain)?,
        object::describe(&objects.log)?,
    ];
    if json {
        println!("{}", serde_json::to_string_pretty(&descriptions)?);
    } else {
        for description in descriptions {
            println!("{}", description.to_text());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Installs missing tools for eBPF, and runs clippy over every program.
pub(crate) fn run_clippy() -> Result<ExitCode> {
    setup::ensure()?;
    Builder::new(workspace::root())?.clippy()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the command that runs clippy over every program.
pub(crate) fn clippy_command() -> Command {
    let mut build_ebpf = command::xtask("build-ebpf");
    build_ebpf.arg("--clippy");
    build_ebpf
}

/// Installs missing tools for eBPF, and builds both objects.
pub(crate) fn build() -> Result<Objects> {
    setup::ensure()?;
    let builder = Builder::new(workspace::root())?;
    Ok(builder.build(builder.target_dir())?)
}
