//! The directories of the workspace, and its packages for the host.

use std::{
    env,
    path::{Path, PathBuf},
};

pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Cargo's arguments for every package that builds for the host. Tasks with the same arguments share their
/// builds: with other packages, dependencies would get other features.
pub(crate) const HOST_PACKAGES: [&str; 5] = [
    "--workspace",
    "--exclude",
    "limiter-ebpf",
    "--exclude",
    "bench-ebpf",
];

/// Returns the directory of builds for the host.
pub(crate) fn target_dir() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}
