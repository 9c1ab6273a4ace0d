//! What the log has said of interfaces: each fact once, however often they are looked at.

use std::collections::{BTreeMap, BTreeSet};

/// Facts logged about interfaces.
#[derive(Default)]
pub(in crate::daemon) struct Logged {
    /// The indices of interfaces that have vanished.
    pub(super) vanished: BTreeSet<u32>,
    /// Why interfaces of these names cannot be attached to.
    pub(super) refused: BTreeMap<String, String>,
    /// Why the kernel does not list the interfaces.
    pub(super) unknown: Option<String>,
}
