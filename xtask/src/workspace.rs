//! Where the workspace is.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// What tells cargo to take every package that builds for the host. Tasks that say the same find
/// what the others have built: with other packages, dependencies get other features.
pub(crate) const HOST_PACKAGES: [&str; 5] = [
    "--workspace",
    "--exclude",
    "limiter-ebpf",
    "--exclude",
    "bench-ebpf",
];

/// Where cargo builds for the host.
pub(crate) fn target_dir() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}
