//! The shared code of the workspace's build scripts.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use crate::Builder;

/// The sources of the XDP program, relative to the workspace's root. Everything that the benchmark
/// builds has them, too.
const SOURCES: [&str; 5] = [
    "limiter-ebpf",
    "limiter-common/src",
    "limiter-common/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];

/// Lets `build` put objects into the build script's output directory, and makes cargo repeat this
/// when the XDP program's sources change, or one of `more`, relative to the workspace's root.
pub fn build_script<T>(
    more: &[&str],
    build: impl FnOnce(&Builder, &Path) -> Result<T, crate::Error>,
) -> ExitCode {
    match run(more, build) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Cargo would print a returned error by `Debug`, which is not readable.
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

/// Returns the nearest directory above a package with a Cargo.lock.
fn workspace(package: &Path) -> Option<&Path> {
    package
        .ancestors()
        .skip(1)
        .find(|directory| directory.join("Cargo.lock").exists())
}
