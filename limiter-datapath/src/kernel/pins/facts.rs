//! What is pinned beside a link.

use jiff::Timestamp;
use limiter_common::packet::Link;
use serde::{Deserialize, Serialize};

use crate::kernel::link::AttachedMode;

/// Facts about an interface that has the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::kernel) struct Facts {
    /// Its name when it was attached to.
    pub(in crate::kernel) name: String,
    /// The inode number of the network namespace that its index belongs to.
    pub(in crate::kernel) namespace: u64,
    /// The cookie of that namespace; `None`: the kernel has none.
    pub(in crate::kernel) cookie: Option<u64>,
    /// The interface number, by which it finds its counters.
    #[serde(rename = "slot")] // The name is outside the ABI: all versions read it.
    pub(in crate::kernel) interface_number: u32,
    /// The header that its frames begin with.
    #[serde(default)] // Versions that do not tell it attach only where that is Ethernet's.
    pub(in crate::kernel) link: Link,
    /// The mode in which it runs.
    pub(in crate::kernel) mode: AttachedMode,
    /// Why `auto` fell back from native mode; `None`: it did not.
    pub(in crate::kernel) fell_back: Option<String>,
    /// When it was attached.
    pub(in crate::kernel) since: Timestamp,
}
