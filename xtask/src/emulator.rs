//! The emulators of whole machines, and the programs on these machines: installed, or unpacked for xtask
//! alone.
//!
//! Debian's emulator conflicts with newer releases' disk tools, which cloud machines often have.

use std::{path::PathBuf, process::Command};

use crate::{architecture::Architecture, package_set::PackageSet};

/// Foreign programs that a machine runs beside ours. busybox's `setpriv` cannot end a process with its
/// parent, and its `nsenter` would run busybox's own `ip`.
pub(crate) const PROGRAMS: [&str; 5] = ["busybox", "ip", "nsenter", "setpriv", "wg"];

/// The emulator of an architecture's machines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emulator(pub(crate) Architecture);

impl Emulator {
    /// Returns the name of the emulator's program.
    pub(crate) const fn program(self) -> &'static str {
        match self.0 {
            Architecture::Own => "qemu-system-x86_64",
            Architecture::Arm64 => "qemu-system-aarch64",
        }
    }

    /// Returns the path of a program that runs on this machine.
    pub(crate) fn find(self, program: &str) -> Option<PathBuf> {
        self.unpacked().find(program)
    }

    /// Returns a command for a program that was [found](Self::find).
    pub(crate) fn command(self, program: &std::path::Path) -> Command {
        self.unpacked().command(program)
    }

    /// Returns the packages for machines of another architecture.
    pub(crate) const fn foreign_programs(self) -> Option<PackageSet> {
        match self.0 {
            Architecture::Own => None,
            Architecture::Arm64 => Some(PackageSet {
                directory: "arm64/programs",
                packages: "busybox-static iproute2 libgcc-s1 util-linux wireguard-tools",
                architecture: Architecture::Arm64,
            }),
        }
    }

    /// Returns the path of a program that an emulated machine runs.
    pub(crate) fn find_inside(self, program: &str) -> Option<PathBuf> {
        self.foreign_programs()
            .unwrap_or(self.unpacked())
            .find(program)
    }

    /// Returns whether all programs are present.
    pub(crate) fn is_there(self) -> bool {
        let here = [self.program(), "busybox"];
        let inside = match self.0 {
            // `needs` checks the other programs, which are installed.
            Architecture::Own => &["busybox", "wg"][..],
            Architecture::Arm64 => &PROGRAMS,
        };
        here.into_iter().all(|name| self.find(name).is_some())
            && inside.iter().all(|name| self.find_inside(name).is_some())
    }

    /// Returns the shell command that unpacks missing programs.
    pub(crate) fn shell(self) -> String {
        let unpacked = [Some(self.unpacked()), self.foreign_programs()];
        let shells = unpacked.into_iter().flatten();
        let shells: Vec<_> = shells.map(|unpacked| unpacked.shell()).collect();
        shells.join(" && ")
    }

    const fn unpacked(self) -> PackageSet {
        let (directory, packages) = match self.0 {
            Architecture::Own => (
                "kernels/emulator",
                "qemu-system-x86 busybox-static wireguard-tools",
            ),
            Architecture::Arm64 => ("kernels/emulator-arm64", "qemu-system-arm busybox-static"),
        };
        PackageSet {
            directory,
            packages,
            architecture: Architecture::Own,
        }
    }
}
