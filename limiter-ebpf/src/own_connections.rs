//! The TCP connections that the host itself began, in a map that all instances share.
//!
//! The program on the root cgroup notes a connection before its first segment leaves, and forgets it
//! when it closes. So nobody but the network stack says whose a connection is, and none that came in
//! is among them. If there are more than the map has room for, the kernel forgets those that no refused
//! packet has asked for lately.

use aya_ebpf::{btf_maps::LruHashMap, macros::btf_map};
use limiter_common::{connection::Ends, judged::Packet};

use crate::globals;

/// The cookie of each connection's socket. The loader sets the capacity.
#[btf_map]
static OWN_CONNECTIONS: LruHashMap<Ends, u64, 1> = LruHashMap::new();

/// Returns whether the policy makes a difference between them and others.
#[inline(always)]
pub(crate) fn are_noted() -> bool {
    globals::shape().own_connections != 0
}

/// Notes a connection that begins.
#[inline(always)]
pub(crate) fn begun(cookie: u64, ends: &Ends) {
    // If it cannot be noted, limits refuse its packets like any others.
    let _ = OWN_CONNECTIONS.insert(ends, cookie, 0);
}

/// Forgets a connection that is closed, if it was noted. The ports may be another one's already, if
/// that has begun on another CPU meanwhile.
#[inline(always)]
pub(crate) fn ended(cookie: u64, ends: &Ends) {
    // SAFETY: the value is copied at once.
    let noted = unsafe { OWN_CONNECTIONS.get(ends) }.copied();
    if noted == Some(cookie) {
        let _ = OWN_CONNECTIONS.remove(ends);
    }
}

/// Returns whether the packet, a TCP segment, belongs to one of them.
#[inline(always)]
pub(crate) fn have(packet: &Packet) -> bool {
    limiter_is_of_own_connection(packet) == 1
}

/// Returns 1 if it does, else 0.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments, and its
/// stack is not the stages'.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_of_own_connection(packet: *const Packet) -> u32 {
    // Older verifiers walk this function even if the policy makes no difference.
    if !are_noted() {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is part of the
    // workspace, which is this CPU's, and the caller does not change it meanwhile.
    let Some(packet) = (unsafe { packet.as_ref() }) else {
        return 0;
    };
    let ends = Ends::of_facts(&packet.facts);
    // SAFETY: the value is not read.
    u32::from(unsafe { OWN_CONNECTIONS.get(ends) }.is_some())
}
