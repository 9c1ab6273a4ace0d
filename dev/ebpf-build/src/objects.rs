//! Builds the objects.

use std::{
    env, fs,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    error::Error, installation, search_path::SearchPath, strip::strip, toolchain::Toolchain,
};

/// The two builds of the same source.
#[derive(Debug, Clone)]
pub struct Objects {
    /// The default object, which any loader accepts.
    pub plain: PathBuf,
    /// The object with aya-log's statements. Their ring buffer is a legacy map definition, which
    /// libbpf and bpftool refuse, so only aya loads it.
    pub log: PathBuf,
}

/// The objects for the benchmark alone.
#[derive(Debug, Clone)]
pub struct BenchObjects {
    /// The XDP program, in a build that draws sources and passes no packet on.
    pub limiter: PathBuf,
    /// The benchmark's own programs.
    pub bench: PathBuf,
}

/// A build of a program's source.
struct Variant {
    package: &'static str,
    binary: &'static str,
    features: &'static [&'static str],
}

const PLAIN: Variant = Variant {
    package: "limiter-ebpf",
    binary: "limiter",
    features: &[],
};
const LOG: Variant = Variant {
    features: &["--features", "log"],
    ..PLAIN
};
const LIMITER_TO_MEASURE: Variant = Variant {
    features: &["--features", "bench"],
    ..PLAIN
};
const BENCH: Variant = Variant {
    package: "bench-ebpf",
    binary: "bench",
    features: &[],
};

/// Builds the workspace's programs for the kernel.
#[derive(Debug, Clone)]
pub struct Builder {
    toolchain: Toolchain,
    workspace: PathBuf,
    target_dir: PathBuf,
}

/// The workspace's profile of these builds, and cargo's directory for it.
const PROFILE: &str = "bpf";

impl Builder {
    /// Finds a toolchain for the workspace at this path, after waiting for an
    /// [`Installation`](crate::Installation) in progress.
    pub fn new(workspace: &Path) -> Result<Self, Error> {
        let target_dir = Self::directory(workspace);
        installation::wait(&target_dir)?;
        Ok(Self {
            toolchain: Toolchain::find(&SearchPath::of_this_process())?,
            workspace: workspace.to_path_buf(),
            target_dir,
        })
    }

    /// Returns the [`target_dir`](Self::target_dir) of a workspace.
    pub(crate) fn directory(workspace: &Path) -> PathBuf {
        let set_by_user = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        target_dir(workspace, set_by_user)
    }

    /// Returns the toolchain that builds.
    #[must_use]
    pub fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }

    /// Returns cargo's directory for BPF builds. It is separate from the outer cargo's, which stays
    /// locked while a build script waits for us.
    #[must_use]
    pub fn target_dir(&self) -> &Path {
        &self.target_dir
    }

    /// Builds both objects into a directory, as `limiter.o` and `limiter-log.o`.
    pub fn build(&self, directory: &Path) -> Result<Objects, Error> {
        let objects = Objects {
            plain: directory.join("limiter.o"),
            log: directory.join("limiter-log.o"),
        };
        // Both builds give their object the same name, and another builder may be at work in this
        // workspace: its `log` object must not become our plain one.
        let lock = self.lock()?;
        self.build_one(&PLAIN, &objects.plain)?;
        self.build_one(&LOG, &objects.log)?;
        drop(lock);
        Ok(objects)
    }

    /// Builds the benchmark's objects into a directory, as `limiter-bench.o` and `bench.o`.
    pub fn build_bench(&self, directory: &Path) -> Result<BenchObjects, Error> {
        let objects = BenchObjects {
            limiter: directory.join("limiter-bench.o"),
            bench: directory.join("bench.o"),
        };
        let lock = self.lock()?;
        self.build_one(&LIMITER_TO_MEASURE, &objects.limiter)?;
        self.build_one(&BENCH, &objects.bench)?;
        drop(lock);
        Ok(objects)
    }

    /// Runs clippy over every program and variant, for the target of its build.
    pub fn clippy(&self) -> Result<(), Error> {
        for variant in [PLAIN, LOG, LIMITER_TO_MEASURE, BENCH] {
            let mut cargo = self.cargo("clippy", &variant);
            cargo.args(["--", "-D", "warnings"]);
            run(cargo, "clippy", &variant)?;
        }
        Ok(())
    }

    fn build_one(&self, variant: &Variant, object: &Path) -> Result<(), Error> {
        run(self.cargo("build", variant), "build", variant)?;
        let built = self
            .target_dir
            .join(target(&build_endian()))
            .join(PROFILE)
            .join(variant.binary);
        let unstripped = fs::read(&built).map_err(|source| Error::Read {
            path: built.clone(),
            source,
        })?;
        let stripped = strip(&unstripped).map_err(|source| Error::NoObject {
            path: built,
            source,
        })?;
        fs::write(object, stripped).map_err(|source| write_error(object, source))
    }

    fn cargo(&self, command: &str, variant: &Variant) -> Command {
        let mut cargo = self.toolchain.cargo();
        cargo
            .current_dir(&self.workspace)
            .args([command, "--package", variant.package])
            .args(["--profile", PROFILE])
            .args(variant.features)
            .args(["--target", target(&build_endian())])
            .args(["-Z", "build-std=core", "--target-dir"])
            .arg(&self.target_dir);
        cargo
    }

    fn lock(&self) -> Result<File, Error> {
        let path = self.target_dir.join("objects.lock");
        fs::create_dir_all(&self.target_dir)
            .and_then(|()| File::create(&path))
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|source| write_error(&path, source))
    }
}

fn target_dir(workspace: &Path, set_by_user: Option<PathBuf>) -> PathBuf {
    workspace
        .join(set_by_user.unwrap_or_else(|| PathBuf::from("target")))
        .join("ebpf")
}

/// Returns the byte order of the machine that will run the object: in a build script the target,
/// otherwise this machine.
fn build_endian() -> String {
    let own = if cfg!(target_endian = "big") {
        "big"
    } else {
        "little"
    };
    env::var("CARGO_CFG_TARGET_ENDIAN").unwrap_or_else(|_| own.to_owned())
}

fn target(endian: &str) -> &'static str {
    if endian == "big" {
        "bpfeb-unknown-none"
    } else {
        "bpfel-unknown-none"
    }
}

fn run(mut command: Command, name: &'static str, variant: &Variant) -> Result<(), Error> {
    // Cargo reads a build script's output as instructions, so keep its child's output out of it.
    let status = command.stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Error::Cargo {
            command: name,
            package: variant.package,
        }),
        Err(source) => Err(Error::Spawn {
            program: PathBuf::from(command.get_program()),
            source,
        }),
    }
}

fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_path_buf(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_beside_the_outer_build() {
        let dir = |set: Option<&str>| target_dir(Path::new("/w"), set.map(PathBuf::from));
        assert_eq!(dir(None), Path::new("/w/target/ebpf"));
        assert_eq!(dir(Some("elsewhere")), Path::new("/w/elsewhere/ebpf"));
        assert_eq!(dir(Some("/t")), Path::new("/t/ebpf"));
    }

    #[test]
    fn the_target_has_the_byte_order_of_its_machine() {
        assert_eq!(target("little"), "bpfel-unknown-none");
        assert_eq!(target("big"), "bpfeb-unknown-none");
    }
}
