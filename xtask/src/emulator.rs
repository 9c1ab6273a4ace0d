//! The emulator's programs: installed, or unpacked for us alone.
//!
//! Debian's emulator excludes the disk tools of newer releases, which machines in clouds often have.
//! Unpacked below target/ it excludes nothing, changes nothing and needs to be removed by nobody.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use ebpf_build::Places;

use crate::workspace;

/// The emulator's program.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// Its packages.
const PACKAGES: &str = "qemu-system-x86 busybox-static";

/// Where Debian's packages have programs.
const PROGRAMS: [&str; 2] = ["usr/bin", "bin"];

/// Where they have libraries.
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// Where it is unpacked.
fn directory() -> PathBuf {
    workspace::target_dir().join("kernels/emulator")
}

/// A program that is installed, or else the unpacked one.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let root = directory().join("root");
    Places::of_this_process().find(program).or_else(|| {
        let mut unpacked = PROGRAMS.iter().map(|place| root.join(place).join(program));
        unpacked.find(|file| file.is_file())
    })
}

/// A command of a program that was [found](find), with the libraries that were unpacked with it.
pub(crate) fn command(program: &Path) -> Command {
    let root = directory().join("root");
    let mut command = Command::new(program);
    if program.starts_with(&root) {
        let unpacked = LIBRARIES.iter().map(|place| root.join(place));
        let before = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let places = unpacked.chain(env::split_paths(&before).filter(|place| place.is_absolute()));
        let places = env::join_paths(places).unwrap_or_else(|_| OsString::new());
        command.env("LD_LIBRARY_PATH", places);
    }
    command
}

/// What a shell has to run to unpack it.
pub(crate) fn shell() -> String {
    let directory = directory();
    let directory = directory.display();
    format!(
        "mkdir -p '{directory}/packages/partial' && \
         apt-get -o DPkg::Lock::Timeout=300 update && \
         apt-get -o DPkg::Lock::Timeout=300 -o APT::Sandbox::User=root \
         -o Dir::Cache::archives='{directory}/packages' install -y --download-only \
         --no-install-recommends {PACKAGES} && \
         for package in '{directory}'/packages/*.deb; do \
         dpkg-deb --extract \"$package\" '{directory}/root' || exit; done"
    )
}
