//! What an emulated machine boots: a kernel, and a file system in memory.

use std::{
    fs,
    fs::File,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::{command, emulator};

const INIT: &str = include_str!("init.sh");

/// With every strategy, and room for everything that a kernel sends by itself.
const CONFIGURATION: &str = "\
limits:
  PacketsPerIPAddress: {burst: 2000, count: 1000, period: 1s}
  Fixed: {id: ipAddress, cost: packets, strategy: fixed-window, rate: 1000/second}
  Moving: {id: ipAddress, cost: packets, strategy: moving-window, rate: 100/second}
  Sliding: {id: ipAddress, cost: packets, strategy: sliding-window-counter, rate: 1000/second}
";

/// The drivers of the interfaces to attach to, and of VLANs on them.
const DRIVERS: [&str; 2] = ["veth", "8021q"];

/// A kernel and its file system, deleted on drop.
pub(super) struct Guest {
    /// The kernel's image.
    pub(super) kernel: PathBuf,
    /// The file system's archive.
    pub(super) initramfs: PathBuf,
    _directory: TempDir,
}

impl Guest {
    /// Makes a guest from an unpacked package and our programs.
    pub(super) fn new(package: &TempDir, release: &str, programs: &[PathBuf]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let kernel = directory.path().join("vmlinuz");
        copy(
            &package.path().join(format!("boot/vmlinuz-{release}")),
            &kernel,
        )?;
        let root = Root(directory.path().join("root"));
        for program in programs {
            root.add_stripped(program)?;
        }
        for name in ["busybox", "ip"] {
            let program = emulator::find(name).with_context(|| format!("no {name}"))?;
            root.add_program(&program, name)?;
        }
        root.add_drivers(package.path(), release)?;
        root.write("init", INIT)?;
        fs::set_permissions(root.0.join("init"), fs::Permissions::from_mode(0o755))?;
        root.write("limiter.yaml", CONFIGURATION)?;
        for name in ["dev", "proc", "run", "sys", "tmp", "tools"] {
            fs::create_dir_all(root.0.join(name))?;
        }
        let initramfs = directory.path().join("initramfs");
        root.pack(&initramfs)?;
        Ok(Self {
            kernel,
            initramfs,
            _directory: directory,
        })
    }
}

/// The directory that becomes the guest's root.
struct Root(PathBuf);

impl Root {
    /// Adds one of our programs without debugging data: the file system is in memory.
    fn add_stripped(&self, program: &Path) -> Result<()> {
        // `engines-0123456789abcdef` becomes `engines`.
        let name = program.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.split('-').next().unwrap_or_default();
        let stripped = self.0.with_file_name(name);
        command::succeed(Command::new("strip").arg("-o").arg(&stripped).arg(program))?;
        self.add_program(&stripped, name)?;
        // Other tests run it where cargo built it.
        let built = self.0.join(program.strip_prefix("/").unwrap_or(program));
        make_parent(&built)?;
        symlink(Path::new("/programs").join(name), &built)
            .with_context(|| format!("cannot make {}", built.display()))
    }

    /// Adds a program and its shared libraries.
    fn add_program(&self, program: &Path, name: &str) -> Result<()> {
        copy(program, &self.0.join("programs").join(name))?;
        // Fails for a static program, which has none.
        let output = Command::new("ldd").arg(program).output()?;
        for library in libraries(&String::from_utf8_lossy(&output.stdout)) {
            self.copy_from(Path::new("/"), library)?;
        }
        Ok(())
    }

    /// Adds the drivers and their dependencies.
    fn add_drivers(&self, package: &Path, release: &str) -> Result<()> {
        let modules = Path::new("lib/modules").join(release);
        let list = command::output(
            emulator::command(&busybox()?)
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
        self.write(modules.join("modules.dep"), &lines)
    }

    fn copy_from(&self, directory: &Path, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let relative = path.strip_prefix("/").unwrap_or(path);
        copy(&directory.join(relative), &self.0.join(relative))
    }

    fn write(&self, path: impl AsRef<Path>, text: &str) -> Result<()> {
        let path = self.0.join(path);
        make_parent(&path)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn pack(&self, archive: &Path) -> Result<()> {
        let output = Command::new("sh")
            .args(["-c", "find . | \"$0\" cpio -o -H newc -R 0:0"])
            .arg(busybox()?)
            .current_dir(&self.0)
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

fn busybox() -> Result<PathBuf> {
    emulator::find("busybox").context("no busybox")
}

/// Returns the files that `ldd` names.
fn libraries(said: &str) -> impl Iterator<Item = &str> {
    said.split_whitespace().filter(|word| word.starts_with('/'))
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
