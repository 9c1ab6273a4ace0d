//! What this host says of its connection tracking, where a service may read it.

use std::{
    fs::{self, File},
    io::Read as _,
};

/// A line for each connection.
const TABLE: &str = "/proc/thread-self/net/nf_conntrack";

/// 0: the kernel sends no events. The packaged service cannot read it.
const EVENTS: &str = "/proc/sys/net/netfilter/nf_conntrack_events";

/// Returns whether the kernel tracks nothing in this thread's network namespace; `None`: it does not say.
pub(crate) fn is_idle() -> Option<bool> {
    let mut table = File::open(TABLE).ok()?;
    let read = table.read(&mut [0]).ok()?;
    Some(read == 0)
}

/// Returns why the kernel sends no events; `None`: it does, or does not say.
pub(crate) fn silence() -> Option<&'static str> {
    let is_off = fs::read_to_string(EVENTS).is_ok_and(|text| text.trim() == "0");
    is_off.then_some("net.netfilter.nf_conntrack_events is 0")
}
