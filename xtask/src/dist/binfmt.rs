//! Lets this machine run programs for arm64 like its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::{architecture, command};

/// The kernel's list of runners for foreign programs.
const LIST: &str = "/proc/sys/fs/binfmt_misc";

/// The name in Debian's package. mmdebstrap looks for it.
const NAME: &str = "qemu-aarch64";

/// The first bytes of programs for arm64, and the mask of the significant bits.
const MAGIC: &str = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00";
const MASK: &str =
    r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff";

/// A registration with the kernel. While it exists, every program for arm64 runs on this machine. The kernel
/// keeps the runner open, so programs run in any root file system.
pub(super) struct Registration {
    /// Whether this process mounted the list.
    mounted: bool,
    /// Whether this process added the entry.
    added: bool,
}

impl Registration {
    /// Registers the runner, unless an entry exists.
    pub(super) fn new() -> Result<Self> {
        let register = Path::new(LIST).join("register");
        let mounted = !register.exists();
        if mounted {
            let mut mount = Command::new("mount");
            mount.args(["-t", "binfmt_misc", "binfmt_misc", LIST]);
            command::succeed(&mut mount)?;
        }
        let mut registered = Self {
            mounted,
            added: false,
        };
        if !entry().exists() {
            let runner = architecture::runner().context("nothing runs programs for arm64 here")?;
            fs::write(&register, line(&runner)).context("cannot register a runner for arm64")?;
            registered.added = true;
        }
        Ok(registered)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // After an error the entry stays: drop has no way to report it.
        if self.added {
            let _ = fs::write(entry(), "-1");
        }
        if self.mounted {
            let _ = command::succeed(Command::new("umount").arg(LIST));
        }
    }
}

fn entry() -> PathBuf {
    Path::new(LIST).join(NAME)
}

/// Returns the entry for a runner. The final flag makes the kernel open the runner at once.
fn line(runner: &Path) -> String {
    format!(":{NAME}:M::{MAGIC}:{MASK}:{}:F", runner.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_mask() {
        let line = line(Path::new("/runner"));
        let parts: Vec<_> = line.split(':').collect();
        let [_, name, kind, offset, magic, mask, runner, flags] = parts[..] else {
            panic!("{line}");
        };
        assert_eq!((name, kind, offset), (NAME, "M", ""));
        assert_eq!((runner, flags), ("/runner", "F"));
        // `ELF` needs no escapes.
        assert_eq!(magic.replace("ELF", r"\xEE\xEE\xEE").len(), mask.len());
    }
}
