//! The parts of the daemon that polls of connections read and change.

use std::sync::Arc;

use super::count::BusyKeys;
use crate::daemon::{forwarded::ForwardedStatus, shared_datapath::SharedDatapath};

/// The parts of the daemon that polls of connections need.
#[derive(Clone, Copy)]
pub(in crate::daemon) struct PollContext<'d> {
    pub(in crate::daemon) datapath: &'d Arc<SharedDatapath>,
    /// The keys with the most open connections.
    pub(in crate::daemon) busy_keys: &'d BusyKeys,
    /// The status of counting forwarded connections.
    pub(in crate::daemon) forwarded: &'d ForwardedStatus,
}
