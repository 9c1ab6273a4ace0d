//! Makes the guest of an emulated machine: a kernel, and a file system in memory.

use std::{
    fs,
    fs::File,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::package::Package;
use crate::{
    architecture::Architecture,
    command,
    emulator::{self, Emulator},
};

const INIT: &str = include_str!("init.sh");

/// Every strategy, and room for the packets that a kernel sends by itself.
const CONFIGURATION: &str = "\
limits:
  PacketsPerIPAddress: {burst: 2000, count: 1000, period: 1s}
  Fixed: {id: ipAddress, cost: packets, strategy: fixed-window, rate: 1000/second}
  Moving: {id: ipAddress, cost: packets, strategy: moving-window, rate: 100/second}
  Sliding: {id: ipAddress, cost: packets, strategy: sliding-window-counter, rate: 1000/second}
";

/// The drivers of the interfaces to attach to.
const DRIVERS: [&str; 12] = [
    "veth",
    "8021q",
    "bonding",
    "ip6_gre",
    "ip6_tunnel",
    "ip_gre",
    "ipip",
    "ipvlan",
    "macvlan",
    "sit",
    "vxlan",
    "wireguard",
];

/// The directories of arm64's libraries, and of its dynamic loader.
const LIBRARIES: [&str; 3] = ["lib", "lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"];

/// A kernel and its file system, deleted on drop.
pub(super) struct Guest {
    /// The architecture of the emulated machine.
    pub(super) architecture: Architecture,
    /// The kernel's image.
    pub(super) kernel: PathBuf,
    /// The file system's archive.
    pub(super) initramfs: PathBuf,
    _directory: TempDir,
}

impl Guest {
    /// Makes a guest from a kernel's package, which is downloaded into a directory. `fill` adds everything
    /// but busybox and the drivers to its root; `init` is its first program.
    pub(super) fn new(
        package: &Package,
        downloads: &Path,
        init: &str,
        fill: impl FnOnce(&Root) -> Result<()>,
    ) -> Result<Self> {
        let architecture = package.architecture();
        let release = package.release();
        let unpacked = package.fetch(downloads)?;
        let directory = tempfile::tempdir()?;
        let kernel = directory.path().join("vmlinuz");
        copy(
            &unpacked.path().join(format!("boot/vmlinuz-{release}")),
            &kernel,
        )?;
        let root = Root {
            directory: directory.path().join("root"),
            emulator: Emulator(architecture),
        };
        for name in emulator::PROGRAMS {
            let program = root.emulator.find_inside(name);
            root.add_program(&program.with_context(|| format!("no {name}"))?, name)?;
        }
        root.add_drivers(unpacked.path(), release)?;
        root.write("init", init)?;
        fs::set_permissions(
            root.directory.join("init"),
            fs::Permissions::from_mode(0o755),
        )?;
        for name in ["dev", "proc", "run", "sys", "tmp", "tools"] {
            fs::create_dir_all(root.directory.join(name))?;
        }
        fill(&root)?;
        let initramfs = directory.path().join("initramfs");
        root.pack(&initramfs)?;
        Ok(Self {
            architecture,
            kernel,
            initramfs,
            _directory: directory,
        })
    }
}

/// Makes a guest that runs our programs.
pub(super) fn with_tests(
    package: &Package,
    downloads: &Path,
    programs: &[PathBuf],
) -> Result<Guest> {
    Guest::new(package, downloads, INIT, |root| {
        for program in programs {
            root.add_stripped(program, package.architecture())?;
        }
        root.write("limiter.yaml", CONFIGURATION)
    })
}

/// The directory that becomes the guest's root.
pub(super) struct Root {
    directory: PathBuf,
    emulator: Emulator,
}

impl Root {
    /// Adds a program of ours, stripped: the file system is in memory.
    fn add_stripped(&self, program: &Path, architecture: Architecture) -> Result<()> {
        // `engines-0123456789abcdef` becomes `engines`.
        let name = program.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.split('-').next().unwrap_or_default();
        let stripped = self.directory.with_file_name(name);
        let mut strip = Command::new(architecture.tool("strip"));
        command::succeed(strip.arg("-o").arg(&stripped).arg(program))?;
        self.add_program(&stripped, name)?;
        // Tests expect it where cargo built it.
        let built = self
            .directory
            .join(program.strip_prefix("/").unwrap_or(program));
        make_parent(&built)?;
        symlink(Path::new("/programs").join(name), &built)
            .with_context(|| format!("cannot make {}", built.display()))
    }

    /// Adds a program and its shared libraries.
    fn add_program(&self, program: &Path, name: &str) -> Result<()> {
        copy(program, &self.directory.join("programs").join(name))?;
        if let Some(foreign) = self.emulator.foreign_programs() {
            // ldd would have to run the program, so copy all libraries.
            return self.copy_libraries(&foreign.root());
        }
        // ldd fails for a static program, which has no libraries.
        let output = Command::new("ldd").arg(program).output()?;
        for library in libraries(&String::from_utf8_lossy(&output.stdout)) {
            self.copy_from(Path::new("/"), library)?;
        }
        Ok(())
    }

    /// Adds every library of an unpacked root.
    fn copy_libraries(&self, root: &Path) -> Result<()> {
        for directory in LIBRARIES {
            let there = root.join(directory);
            for entry in fs::read_dir(&there).into_iter().flatten() {
                let path = entry?.path();
                let file = path.strip_prefix(root)?;
                if is_library(file) && path.is_file() {
                    self.copy_from(root, file)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the drivers and their dependencies.
    fn add_drivers(&self, package: &Path, release: &str) -> Result<()> {
        let modules = Path::new("lib/modules").join(release);
        let list = command::output(
            self.emulator
                .command(&self.busybox()?)
                .args(["depmod", "-n", "-b"])
                .arg(package)
                .arg(release),
        )?;
        let mut lines = String::new();
        for driver in DRIVERS {
            let line = line_of(&list, driver)
                .with_context(|| format!("the kernel's package has no {driver} driver"))?;
            for file in line.split([':', ' ']).filter(|file| !file.is_empty()) {
                self.copy_from(package, modules.join(file))?;
            }
            lines.extend([line, "\n"]);
        }
        self.write("drivers", &(DRIVERS.join("\n") + "\n"))?;
        self.write(modules.join("modules.dep"), &lines)
    }

    /// Returns this machine's busybox.
    fn busybox(&self) -> Result<PathBuf> {
        self.emulator.find("busybox").context("no busybox")
    }

    fn copy_from(&self, directory: &Path, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let relative = path.strip_prefix("/").unwrap_or(path);
        copy(&directory.join(relative), &self.directory.join(relative))
    }

    pub(super) fn write(&self, path: impl AsRef<Path>, text: &str) -> Result<()> {
        let path = self.directory.join(path);
        make_parent(&path)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Adds a copy of a directory, with owners and permissions.
    pub(super) fn add_copy(&self, directory: &Path, name: &str) -> Result<()> {
        let mut copy = Command::new("cp");
        copy.arg("--archive").arg(directory);
        command::succeed(copy.arg(self.directory.join(name)))
    }

    fn pack(&self, archive: &Path) -> Result<()> {
        let output = Command::new("sh")
            .args(["-c", "find . | \"$0\" cpio -o -H newc -R 0:0"])
            .arg(self.busybox()?)
            .current_dir(&self.directory)
            .stdout(File::create(archive)?)
            .output()?;
        ensure!(
            output.status.success(),
            "cannot pack the file system: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(())
    }
}

/// Returns the files that `ldd` names.
fn libraries(said: &str) -> impl Iterator<Item = &str> {
    said.split_whitespace().filter(|word| word.starts_with('/'))
}

/// Returns whether a file is a shared library, `libc.so.6` for instance.
fn is_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

/// Returns a driver's line in depmod's list, `PATH/veth.ko.xz: DEPENDENCIES`.
fn line_of<'l>(list: &'l str, driver: &str) -> Option<&'l str> {
    list.lines().find(|line| {
        let path = line.split(':').next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        file.split('.').next() == Some(driver)
    })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_program_loads() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2a)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f2b)\n";
        let found: Vec<_> = libraries(said).collect();
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(found, expected);
        assert_eq!(libraries("").next(), None);
    }

    #[test]
    fn finds_the_driver_and_no_namesake() {
        let list = "kernel/drivers/net/veth_of_others.ko: kernel/lib/a.ko\n\
            kernel/drivers/net/veth.ko.xz: kernel/lib/a.ko.xz kernel/lib/b.ko.xz\n";
        let expected = "kernel/drivers/net/veth.ko.xz: kernel/lib/a.ko.xz kernel/lib/b.ko.xz";
        assert_eq!(line_of(list, "veth"), Some(expected));
        assert_eq!(line_of(list, "a"), None);
    }
}
