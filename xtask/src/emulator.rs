//! The emulator's programs: installed, or unpacked for xtask alone.
//!
//! Debian's emulator conflicts with newer releases' disk tools, which cloud machines often have.
//! Unpacked below target/, it conflicts with nothing, changes nothing and needs no removal.

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

/// The emulator's packages.
const PACKAGES: &str = "qemu-system-x86 busybox-static";

/// The directories of programs in Debian's packages.
const PROGRAMS: [&str; 2] = ["usr/bin", "bin"];

/// The directories of libraries.
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// Returns where to unpack the emulator.
fn directory() -> PathBuf {
    workspace::target_dir().join("kernels/emulator")
}

/// Returns the path of a program: the installed one, or else the unpacked one.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let root = directory().join("root");
    Places::of_this_process().find(program).or_else(|| {
        let mut unpacked = PROGRAMS.iter().map(|place| root.join(place).join(program));
        unpacked.find(|file| file.is_file())
    })
}

/// Returns a command for a program that was [found](find), with the libraries unpacked with it.
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

/// Returns the shell command that unpacks the emulator.
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
