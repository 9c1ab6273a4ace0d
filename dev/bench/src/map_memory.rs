//! The kernel memory of this process's BPF maps, as the kernel accounts for it.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::{AsFd, AsRawFd as _},
    path::Path,
};

use anyhow::{Context as _, Result};

const DESCRIPTORS: &str = "/proc/self/fdinfo";

/// Returns the memory of all maps, in bytes.
pub(crate) fn of_all() -> Result<u64> {
    let mut maps = BTreeMap::new();
    for entry in fs::read_dir(DESCRIPTORS)? {
        // The descriptor may be closed by now, as the directory's own is.
        let Ok(info) = fs::read_to_string(entry?.path()) else {
            continue;
        };
        if let (Some(id), Some(bytes)) = (field(&info, "map_id:"), bytes(&info)) {
            maps.insert(id, bytes);
        }
    }
    Ok(maps.values().sum())
}

/// Returns the memory of one map, in bytes.
pub(crate) fn of(map: impl AsFd) -> Result<u64> {
    let descriptor = map.as_fd().as_raw_fd().to_string();
    let info = fs::read_to_string(Path::new(DESCRIPTORS).join(descriptor))?;
    bytes(&info).context("this kernel does not show a map's memory")
}

fn bytes(info: &str) -> Option<u64> {
    field(info, "memlock:")
}

fn field(info: &str, name: &str) -> Option<u64> {
    info.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}
