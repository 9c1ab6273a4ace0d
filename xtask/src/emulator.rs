//! The emulator's programs: installed, or unpacked for xtask alone.
//!
//! Debian's emulator conflicts with newer releases' disk tools, which cloud machines often have.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::unpacked::Unpacked;

/// The emulator's program.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

const EMULATOR: Unpacked = Unpacked {
    directory: "kernels/emulator",
    packages: "qemu-system-x86 busybox-static",
};

/// Returns the path of a program: the installed one, or else the unpacked one.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    EMULATOR.find(program)
}

/// Returns a command for a program that was [found](find).
pub(crate) fn command(program: &Path) -> Command {
    EMULATOR.command(program)
}

/// Returns the shell command that unpacks the emulator.
pub(crate) fn shell() -> String {
    EMULATOR.shell()
}
