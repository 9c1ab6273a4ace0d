//! What a build script of the workspace does.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use crate::Builder;

/// What the XDP program is made of, from the workspace's root: whatever the benchmark builds is
/// made of it too.
const SOURCES: [&str; 5] = [
    "limiter-ebpf",
    "limiter-common/src",
    "limiter-common/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];

/// Has `build` put objects into the directory that cargo gives a build script for what it makes,
/// and tells cargo to do so again when the XDP program's sources change, or one of `more`, from
/// the workspace's root.
pub fn build_script<T>(
    more: &[&str],
    build: impl FnOnce(&Builder, &Path) -> Result<T, crate::Error>,
) -> ExitCode {
    match run(more, build) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not cargo's `Debug` of a returned error: the message is for people.
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run<T>(
    more: &[&str],
    build: impl FnOnce(&Builder, &Path) -> Result<T, crate::Error>,
) -> Result<(), Box<dyn Error>> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let workspace = workspace(&package).ok_or("there is no Cargo.lock above the package")?;
    for source in SOURCES.iter().chain(more) {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(source).display()
        );
    }
    build(
        &Builder::new(workspace)?,
        &PathBuf::from(env::var("OUT_DIR")?),
    )?;
    Ok(())
}

/// The nearest directory above a package that holds a Cargo.lock.
fn workspace(package: &Path) -> Option<&Path> {
    package
        .ancestors()
        .skip(1)
        .find(|directory| directory.join("Cargo.lock").exists())
}
