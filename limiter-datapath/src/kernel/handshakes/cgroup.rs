//! Finds the root cgroup. Every TCP connection passes through it.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
};

use super::HandshakesError;

const MOUNTS: &str = "/proc/self/mountinfo";

/// Opens the version 2 root cgroup that this process sees.
pub(super) fn open_root() -> Result<File, HandshakesError> {
    let unreadable = |source| HandshakesError::Cgroup {
        path: PathBuf::from(MOUNTS),
        source,
    };
    let mounts = fs::read(MOUNTS).map_err(unreadable)?;
    let mounts = String::from_utf8_lossy(&mounts);
    let path = PathBuf::from(root_in(&mounts).ok_or(HandshakesError::NoCgroup)?);
    let opened = File::open(&path);
    opened.map_err(|source: io::Error| HandshakesError::Cgroup { path, source })
}

/// The root's mount point in the text of a mountinfo (see proc(5)).
fn root_in(mounts: &str) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let is_root = root == "/" && filesystem.split(' ').next() == Some("cgroup2");
        is_root.then_some(point)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_root_beside_other_cgroups() {
        const BOTH: &str = "\
25 1 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw
31 25 0:26 / /sys/fs/cgroup ro shared:9 - tmpfs tmpfs ro,mode=755
33 31 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
34 31 0:29 /user /mnt/part rw - cgroup2 cgroup2 rw
32 31 0:27 / /sys/fs/cgroup/unified rw,relatime shared:10 master:2 - cgroup2 cgroup2 rw,nsdelegate
";
        assert_eq!(root_in(BOTH), Some("/sys/fs/cgroup/unified"));
        let without: String = BOTH.lines().take(4).collect::<Vec<_>>().join("\n");
        assert_eq!(root_in(&without), None);
    }
}
