//! The architectures that we build for, and the tools for foreign ones.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::package_set::PackageSet;

/// Rust's name of arm64.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The prefix of the cross tools' names, and the name of the directory with arm64's libraries.
const TOOLS: &str = "aarch64-linux-gnu";

/// The runner of arm64 programs, unpacked. Debian's package would register it with the kernel, for every
/// program of the machine.
const RUNNER: PackageSet = PackageSet {
    directory: "arm64/runner",
    packages: "qemu-user-static",
    architecture: Architecture::Own,
};

/// The architecture of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Architecture {
    /// This machine's.
    #[default]
    Own,
    /// 64-bit ARM, built and run on another.
    Arm64,
}

impl Architecture {
    /// Fails if this machine cannot build for it.
    pub(crate) fn check(self) -> Result<()> {
        ensure!(
            self == Self::Own || cfg!(target_arch = "x86_64"),
            "`--arch arm64` is for machines with x86-64: on arm64 leave it out"
        );
        Ok(())
    }

    /// Returns Debian's name, if it is not this machine's.
    pub(crate) const fn foreign(self) -> Option<&'static str> {
        match self {
            Self::Own => None,
            Self::Arm64 => Some("arm64"),
        }
    }

    /// Makes cargo build for it.
    pub(crate) fn add_to(self, cargo: &mut Command) {
        if self == Self::Arm64 {
            let linker = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER";
            cargo
                .args(["--target", TARGET])
                .env(linker, self.tool("gcc"));
        }
    }

    /// Returns the name of a cross tool such as `gcc`.
    pub(crate) fn tool(self, name: &str) -> String {
        match self {
            Self::Own => name.to_owned(),
            Self::Arm64 => format!("{TOOLS}-{name}"),
        }
    }

    /// Returns the command that runs one of its programs here.
    pub(crate) fn command(self, program: &Path) -> Result<Command> {
        if self == Self::Own {
            return Ok(Command::new(program));
        }
        let runner = runner().context("nothing runs programs for arm64 here")?;
        let mut command = RUNNER.command(&runner);
        command.args(["-L", &format!("/usr/{TOOLS}")]).arg(program);
        Ok(command)
    }
}

pub(crate) fn runner() -> Option<std::path::PathBuf> {
    RUNNER.find("qemu-aarch64-static")
}

/// Returns the shell command that unpacks the runner.
pub(crate) fn runner_shell() -> String {
    RUNNER.shell()
}

/// The shell command that installs Rust's library.
pub(crate) const LIBRARY_SHELL: &str = "rustup target add aarch64-unknown-linux-gnu";

/// Returns whether Rust's library for arm64 is there.
pub(crate) fn has_library() -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    rustc.output().is_ok_and(|output| {
        let directory = String::from_utf8_lossy(&output.stdout);
        output.status.success() && Path::new(directory.trim()).is_dir()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_architecture_changes_a_build() {
        let shown = |architecture: Architecture| {
            let mut cargo = Command::new("cargo");
            cargo.arg("build");
            architecture.add_to(&mut cargo);
            crate::command::shown(&cargo)
        };
        assert_eq!(shown(Architecture::Own), "cargo build");
        let expected = "cargo build --target aarch64-unknown-linux-gnu";
        assert_eq!(shown(Architecture::Arm64), expected);
        assert_eq!(Architecture::Own.tool("strip"), "strip");
        assert_eq!(Architecture::Arm64.tool("strip"), "aarch64-linux-gnu-strip");
    }
}
