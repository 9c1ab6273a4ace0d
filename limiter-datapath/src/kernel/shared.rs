//! Where instances of the program find the maps they share.
//!
//! Maps are shared by pinning them under a name while the instances are made. That is in a BPF
//! filesystem that is mounted nowhere: only this process's descriptor holds it, so nothing is
//! left behind however the process ends. It takes CAP_SYS_ADMIN to make one; a daemon that has
//! only what it needs else uses a directory in the filesystem that is mounted, for some
//! milliseconds.

use std::{
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::DirBuilderExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::DatapathError;

/// Where systemd mounts the BPF filesystem, and everybody else.
const MOUNTED: &str = "/sys/fs/bpf";

/// A directory for pinned maps that lives as long as this value.
pub(super) struct SharedDirectory {
    path: PathBuf,
    /// Keeps a filesystem that is mounted nowhere; `None`: the directory is in the mounted one.
    mount: Option<OwnedFd>,
}

impl SharedDirectory {
    pub(super) fn new() -> Result<Self, DatapathError> {
        match detached_bpf_filesystem() {
            Ok(mount) => Ok(Self {
                path: PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())),
                mount: Some(mount),
            }),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Self::in_mounted(),
            Err(error) => Err(DatapathError::Filesystem(error)),
        }
    }

    fn in_mounted() -> Result<Self, DatapathError> {
        // Not the process's number, which another has in another namespace.
        let number = getrandom::u64().map_err(DatapathError::Random)?;
        let path = Path::new(MOUNTED).join(format!("limiter-{number:016x}"));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|source| DatapathError::MountedFilesystem { source })?;
        Ok(Self { path, mount: None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SharedDirectory {
    fn drop(&mut self) {
        if self.mount.is_none() {
            // Whoever took the right to remove it away in the meantime has to do it himself.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The root of a new BPF filesystem that is not part of any mount tree (Linux 5.2).
fn detached_bpf_filesystem() -> io::Result<OwnedFd> {
    let context = fsopen("bpf", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let root = fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?;
    Ok(root)
}
