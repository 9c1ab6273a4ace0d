//! Facts about interfaces that the log already has: each is logged once, however often the interfaces are looked at.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct InterfaceProblems {
    /// The indices of vanished interfaces.
    pub(super) vanished: BTreeSet<u32>,
    /// Why interfaces of these names cannot be attached to.
    pub(super) refused: BTreeMap<String, String>,
    /// Why the kernel does not list the interfaces.
    pub(super) unknown: Option<String>,
}
