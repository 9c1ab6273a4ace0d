//! Fresh root file systems of Debian's releases.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::{architecture::Architecture, command};

/// The packages of a machine that runs services, beside the essential ones.
const PACKAGES: &str = "systemd,systemd-sysv,iproute2";

/// A root file system. Removed when dropped.
pub(super) struct Root(PathBuf);

impl Root {
    /// Makes the root file system of a release, below a directory.
    pub(super) fn new(release: &str, directory: &Path, architecture: Architecture) -> Result<Self> {
        println!("package: Debian {release}");
        let root = Self(directory.join(format!("debian-{release}")));
        let mut make = Command::new("mmdebstrap");
        make.args(["--quiet", "--variant=minbase"])
            .arg(format!("--include={PACKAGES}"));
        if let Some(name) = architecture.foreign() {
            // mmdebstrap's check for an emulator would need another program. The kernel already runs these.
            make.args(["--skip=check/qemu", &format!("--architectures={name}")]);
        }
        make.arg(release).arg(&root.0);
        command::succeed(&mut make)
            .context("no such root was made: is mmdebstrap installed, and Debian in reach?")?;
        Ok(root)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // The next run removes leftovers together with the package's contents.
        let _ = fs::remove_dir_all(&self.0);
    }
}
