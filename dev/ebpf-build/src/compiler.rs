//! Finds a compiler that can build `core` for BPF.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{rustup, search_path::SearchPath};

/// A compiler with its library's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    /// Its origin.
    pub origin: Origin,
    /// The directory of its `rustc` and `cargo`.
    pub bin: PathBuf,
}

/// The origin of a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A nightly of rustup, by its full name.
    Rustup(String),
    /// The distribution's packages.
    Distribution,
}

impl Compiler {
    /// Returns whether it has `cargo clippy`.
    #[must_use]
    pub fn has_clippy(&self) -> bool {
        self.bin.join("cargo-clippy").is_file() && self.bin.join("clippy-driver").is_file()
    }
}

/// Finds a rustup nightly with the rust-src component, or else the distribution's compiler, if that
/// includes its library's source.
#[must_use]
pub fn find(search_path: &SearchPath) -> Option<Compiler> {
    find_nightly(search_path).or_else(|| find_distribution(search_path))
}

fn find_nightly(search_path: &SearchPath) -> Option<Compiler> {
    let rustup = search_path.find("rustup")?;
    rustup::toolchains(&rustup)
        .into_iter()
        .filter(|toolchain| toolchain.name.starts_with("nightly"))
        .find_map(|toolchain| {
            let bin = toolchain.sysroot.join("bin");
            is_usable(&bin, &toolchain.sysroot).then_some(Compiler {
                origin: Origin::Rustup(toolchain.name),
                bin,
            })
        })
}

fn find_distribution(search_path: &SearchPath) -> Option<Compiler> {
    let bin = search_path.system().to_path_buf();
    let sysroot = ask(&bin.join("rustc"), &["--print", "sysroot"])?;
    is_usable(&bin, Path::new(sysroot.trim_end())).then_some(Compiler {
        origin: Origin::Distribution,
        bin,
    })
}

fn is_usable(bin: &Path, sysroot: &Path) -> bool {
    bin.join("cargo").is_file()
        && sysroot.join("lib/rustlib/src/rust/library/core").is_dir()
        && ask(&bin.join("rustc"), &["--version"]).is_some_and(|version| is_recent(&version))
}

fn ask(rustc: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(rustc)
        .args(arguments.iter().map(OsStr::new))
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Returns whether a compiler can build the workspace: cargo refuses 1.85, which Debian 12 had before 1.96.
fn is_recent(version: &str) -> bool {
    let found = version.split_whitespace().nth(1).and_then(release);
    found.is_some() && found >= release(env!("CARGO_PKG_RUST_VERSION"))
}

/// Parses `1.97.0-nightly` into (1, 97).
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    /// A machine in a directory, with at most one nightly and one distribution's compiler.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn script(&self, path: &str, body: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn source(&self, sysroot: &str) {
            let library = self.0.path().join(sysroot).join("lib/rustlib/src/rust");
            fs::create_dir_all(library.join("library/core")).unwrap();
        }

        fn compiler(&self, bin: &str, sysroot: &str, version: &str) {
            let sysroot = self.0.path().join(sysroot);
            self.script(
                &format!("{bin}/rustc"),
                &format!(
                    "case $1 in --version) echo 'rustc {version} (0 2026-01-01)';; *) echo '{}';; esac",
                    sysroot.display()
                ),
            );
            self.script(&format!("{bin}/cargo"), "");
        }

        fn nightly(&self, version: &str) {
            self.compiler("nightly/bin", "nightly", version);
            let sysroot = self.0.path().join("nightly");
            self.script(
                "path/rustup",
                &format!("echo nightly-of-test '{}'", sysroot.display()),
            );
        }

        fn find(&self) -> Option<Origin> {
            let search_path =
                SearchPath::new(vec![self.0.path().join("path")], self.0.path().join("usr"));
            find(&search_path).map(|compiler| compiler.origin)
        }
    }

    // A single test: a script that one thread writes does not start (ETXTBSY) while another thread's child still has it
    // open for writing.
    #[test]
    fn takes_a_complete_nightly_before_the_distribution_and_nothing_else() {
        let machine = Machine::new();
        assert_eq!(machine.find(), None, "nothing is installed");

        machine.nightly("1.97.0-nightly");
        assert_eq!(machine.find(), None, "the nightly has no source");

        machine.compiler("usr", "usr", "1.96.0");
        assert_eq!(
            machine.find(),
            None,
            "the distribution has no source either"
        );

        machine.source("usr");
        assert_eq!(machine.find(), Some(Origin::Distribution));

        machine.source("nightly");
        let nightly = Origin::Rustup("nightly-of-test".to_owned());
        assert_eq!(machine.find(), Some(nightly));

        machine.nightly("1.90.0-nightly");
        assert_eq!(machine.find(), Some(Origin::Distribution), "too old");

        machine.compiler("usr", "usr", "1.85.0");
        assert_eq!(machine.find(), None, "both are too old");
    }
}
