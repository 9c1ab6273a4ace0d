//! The directory through which instances of the program share maps.
//!
//! Instances share maps that are pinned under a name while the instances are made. The pins are in
//! a BPF filesystem without a mount point: only this process's descriptor holds it, so it vanishes
//! however the process ends. Making it takes CAP_SYS_ADMIN. A daemon without it uses a directory in
//! the mounted filesystem for some milliseconds.

use std::{
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::DirBuilderExt as _,
    },
    path::{Path, PathBuf},
};

use aya::{EbpfLoader, maps::MapData};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::DatapathError;

const MOUNTED: &str = "/sys/fs/bpf";

/// Has a loader reuse existing maps, by pinning them in a directory.
pub(super) fn reuse_maps<'m>(
    loader: &mut EbpfLoader<'_>,
    directory: &MapDirectory,
    maps: impl IntoIterator<Item = (&'static str, &'m MapData)>,
) -> Result<(), DatapathError> {
    for (map, data) in maps {
        let path = directory.path().join(map);
        let pinned = data.pin(&path);
        pinned.map_err(|source| DatapathError::Pin { map, source })?;
        loader.map_pin_path(map, path);
    }
    Ok(())
}

/// A directory for pinned maps that lives as long as this value.
pub(super) struct MapDirectory {
    path: PathBuf,
    /// Holds the filesystem without a mount point; `None`: the directory is in the mounted
    /// filesystem.
    mount: Option<OwnedFd>,
}

impl MapDirectory {
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
        // A process id would not do: a process in another namespace may have the same.
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

impl Drop for MapDirectory {
    fn drop(&mut self) {
        if self.mount.is_none() {
            // If the permission to remove it was withdrawn meanwhile, it stays.
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
