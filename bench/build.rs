//! Builds the objects that the benchmark alone loads.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use ebpf_build::Builder;

/// What the objects are made of, from the workspace's root.
const SOURCES: [&str; 7] = [
    "bench-common",
    "bench-ebpf",
    "limiter-ebpf",
    "limiter-common/src",
    "limiter-common/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not cargo's `Debug` of a returned error: the message is for people.
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let workspace = package.parent().unwrap_or(Path::new("."));
    for source in SOURCES {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(source).display()
        );
    }
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    Builder::new(workspace)?.build_bench(&out_dir)?;
    Ok(())
}
