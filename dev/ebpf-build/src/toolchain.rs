//! A compiler and a linker, ready to run.

use std::{
    env,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    compiler::{self, Compiler, Origin},
    environment, linker,
    search_path::SearchPath,
};

/// The flags of every build for BPF:
///
/// * debug information and `--btf`, since BTF describes the maps to the kernel;
/// * the third version of the instruction set, the first to have compare-and-exchange.
const FLAGS: [&str; 3] = ["-Cdebuginfo=2", "-Clink-arg=--btf", "-Ctarget-cpu=v3"];

/// The tools for building for BPF.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// The compiler.
    pub compiler: Compiler,
    /// The linker's path.
    pub linker: PathBuf,
}

/// The parts of a toolchain that a machine lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingParts {
    /// No compiler includes its library's source.
    pub compiler: bool,
    /// bpf-linker is not installed.
    pub linker: bool,
}

impl std::error::Error for MissingParts {}

impl fmt::Display for MissingParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.compiler {
            write!(
                f,
                "neither a rustup nightly nor a system rustc (Rust {} or later) has its library's source",
                env!("CARGO_PKG_RUST_VERSION")
            )?;
        }
        if self.compiler && self.linker {
            write!(f, ", and ")?;
        }
        if self.linker {
            write!(f, "{} is not installed", linker::NAME)?;
        }
        Ok(())
    }
}

impl Toolchain {
    /// Finds a compiler and a linker.
    pub fn find(search_path: &SearchPath) -> Result<Self, MissingParts> {
        match (compiler::find(search_path), linker::find(search_path)) {
            (Some(compiler), Some(linker)) => Ok(Self { compiler, linker }),
            (compiler, linker) => Err(MissingParts {
                compiler: compiler.is_none(),
                linker: linker.is_none(),
            }),
        }
    }

    /// Returns this toolchain's cargo, by its full path and with its own rustc: rustup's proxies
    /// for both are often earlier on the search path.
    pub(crate) fn cargo(&self) -> Command {
        let bin = &self.compiler.bin;
        let mut cargo = Command::new(bin.join("cargo"));
        environment::clean(&mut cargo);
        cargo
            .env("RUSTC", bin.join("rustc"))
            .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"))
            .env("PATH", self.search_path());
        match &self.compiler.origin {
            // Lets a release use `-Z build-std` and the compiler's intrinsics.
            Origin::Distribution => cargo.env("RUSTC_BOOTSTRAP", "1"),
            // A bpf-linker built without LLVM uses the compiler's.
            Origin::Rustup(_) => cargo.env("LD_LIBRARY_PATH", self.library_path()),
        };
        cargo
    }

    /// Returns the search path on which cargo finds `cargo-clippy`, and rustc finds bpf-linker.
    fn search_path(&self) -> OsString {
        let own = [Some(self.compiler.bin.as_path()), self.linker.parent()];
        before(own.into_iter().flatten(), "PATH")
    }

    fn library_path(&self) -> OsString {
        let lib = self.compiler.bin.with_file_name("lib");
        before([lib.as_path()].into_iter(), "LD_LIBRARY_PATH")
    }
}

/// Returns the directories followed by the variable's.
fn before<'a>(directories: impl Iterator<Item = &'a Path>, variable: &str) -> OsString {
    let inherited = env::var_os(variable).unwrap_or_default();
    let all = directories
        .map(Path::to_path_buf)
        .chain(env::split_paths(&inherited));
    // Joining fails only for a directory with a colon in its name, which could not be searched
    // anyway.
    env::join_paths(all).unwrap_or(inherited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_missing() {
        let search_path = SearchPath::new(Vec::new(), PathBuf::from("/nonexistent"));
        let missing = Toolchain::find(&search_path).unwrap_err();
        assert_eq!(
            missing,
            MissingParts {
                compiler: true,
                linker: true
            }
        );
        let message = crate::Error::from(missing).to_string();
        assert!(message.starts_with("no eBPF toolchain: neither a rustup nightly"));
        assert!(
            message.ends_with(", and bpf-linker is not installed: run `cargo xtask setup`"),
            "{message}"
        );
    }

    #[test]
    fn cargo_is_called_by_its_full_name() {
        let toolchain = Toolchain {
            compiler: Compiler {
                origin: Origin::Distribution,
                bin: PathBuf::from("/usr/bin"),
            },
            linker: PathBuf::from("/home/a/.cargo/bin/bpf-linker"),
        };
        let cargo = toolchain.cargo();
        assert_eq!(cargo.get_program(), "/usr/bin/cargo");
        let path = cargo
            .get_envs()
            .find_map(|(name, value)| (name == "PATH").then_some(value?))
            .unwrap();
        let path = path.to_str().unwrap();
        assert!(path.starts_with("/usr/bin:/home/a/.cargo/bin"), "{path}");
    }
}
