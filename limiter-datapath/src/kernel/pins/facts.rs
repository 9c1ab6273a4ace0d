//! The facts that are pinned beside a link.

use jiff::Timestamp;
use limiter_common::packet::Link;
use serde::{Deserialize, Serialize};

use crate::kernel::link::AttachedMode;

/// Facts about an interface with the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::kernel) struct Facts {
    /// The interface's name at the time of attaching.
    pub(in crate::kernel) name: String,
    /// The inode number of the network namespace that the interface's index belongs to.
    pub(in crate::kernel) namespace: u64,
    /// The cookie of that namespace; `None`: the kernel has no cookies.
    pub(in crate::kernel) cookie: Option<u64>,
    /// The interface number: the index of the interface's counters.
    #[serde(rename = "slot")] // The name is outside the ABI: all versions read it.
    pub(in crate::kernel) interface_number: u32,
    /// The header at the start of the interface's frames.
    #[serde(default)] // Versions without this field attach only to Ethernet interfaces.
    pub(in crate::kernel) link: Link,
    /// The mode in which the program runs.
    pub(in crate::kernel) mode: AttachedMode,
    /// Why `auto` fell back from native mode; `None`: it did not fall back.
    pub(in crate::kernel) fell_back: Option<String>,
    /// The time of attaching.
    pub(in crate::kernel) since: Timestamp,
}
