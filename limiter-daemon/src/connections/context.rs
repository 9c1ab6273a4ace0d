//! The parts of the daemon that polls of connections read and change.

use std::sync::Arc;

use super::count::BusyKeys;
use crate::{forwarded::ForwardedStatus, shared_datapath::SharedDatapath};

/// The parts of the daemon that polls of connections need.
#[derive(Clone, Copy)]
pub(crate) struct PollContext<'d> {
    pub(crate) datapath: &'d Arc<SharedDatapath>,
    /// The keys with the most open connections.
    pub(crate) busy_keys: &'d BusyKeys,
    /// The status of counting forwarded connections.
    pub(crate) forwarded: &'d ForwardedStatus,
}
