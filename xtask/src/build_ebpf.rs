//! `cargo xtask build-ebpf`

use std::process::ExitCode;

use anyhow::Result;
use ebpf_build::Builder;

use crate::{object, setup, workspace};

/// Builds both objects and describes them.
pub(crate) fn run(json: bool) -> Result<ExitCode> {
    setup::ensure()?;
    let builder = Builder::new(workspace::root())?;
    let objects = builder.build(builder.target_dir())?;
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
