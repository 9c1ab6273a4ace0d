//! The host's settings of connection tracking, as far as a service may read them.

use std::{
    fs::{self, File},
    io::Read as _,
};

/// The table of connections: one line for each.
const TABLE: &str = "/proc/thread-self/net/nf_conntrack";

/// 0: the kernel sends no events. The packaged service cannot read this file.
const EVENTS: &str = "/proc/sys/net/netfilter/nf_conntrack_events";

/// Returns whether the kernel tracks no connection in this thread's network namespace; `None`: unreadable.
#[must_use]
pub fn is_idle() -> Option<bool> {
    let mut table = File::open(TABLE).ok()?;
    let read = table.read(&mut [0]).ok()?;
    Some(read == 0)
}

/// Returns why the kernel sends no events; `None`: it does, or the setting is unreadable.
#[must_use]
pub fn no_events_reason() -> Option<&'static str> {
    let is_off = fs::read_to_string(EVENTS).is_ok_and(|text| text.trim() == "0");
    is_off.then_some("net.netfilter.nf_conntrack_events is 0")
}
