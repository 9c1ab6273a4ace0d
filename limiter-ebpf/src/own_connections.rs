//! The TCP connections that the host itself opened, in a map that all instances share.
//!
//! The program on the root cgroup adds a connection before its first segment leaves, and removes it when it closes. So
//! only the network stack decides on the owner of a connection, and incoming connections are never in the map. If the
//! map is full, the kernel evicts connections that no refused packet has matched lately.

use aya_ebpf::{btf_maps::LruHashMap, macros::btf_map};
use limiter_common::{classified_packet::ClassifiedPacket, connection::Ends};

use crate::globals;

/// The cookie of each connection's socket. The loader sets the capacity.
#[btf_map]
static OWN_CONNECTIONS: LruHashMap<Ends, u64, 1> = LruHashMap::new();

/// Whether the policy treats own and other connections differently.
#[inline(always)]
pub(crate) fn are_recorded() -> bool {
    globals::features().own_connections != 0
}

/// Adds a connection that the host opens.
#[inline(always)]
pub(crate) fn begun(cookie: u64, ends: &Ends) {
    // If that fails, limits refuse its packets like any others.
    let _ = OWN_CONNECTIONS.insert(ends, cookie, 0);
}

/// Removes a closed connection, if it is in the map. Its ports may belong to another connection already, opened on
/// another CPU meanwhile.
#[inline(always)]
pub(crate) fn ended(cookie: u64, ends: &Ends) {
    // SAFETY: the value is copied at once.
    let recorded = unsafe { OWN_CONNECTIONS.get(ends) }.copied();
    if recorded == Some(cookie) {
        let _ = OWN_CONNECTIONS.remove(ends);
    }
}

/// Whether the packet, a TCP segment, belongs to an own connection.
#[inline(always)]
pub(crate) fn contain(packet: &ClassifiedPacket) -> bool {
    limiter_is_of_own_connection(packet) == 1
}

/// Looks up the packet's connection; returns 1 if it is an own one, else 0.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments, and it does not use the
/// stages' stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_of_own_connection(packet: *const ClassifiedPacket) -> u32 {
    // Older verifiers walk this function even if the policy does not need it.
    if !are_recorded() {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is part of the scratch memory,
    // which is this CPU's, and the caller does not change it meanwhile.
    let Some(packet) = (unsafe { packet.as_ref() }) else {
        return 0;
    };
    let ends = Ends::of_facts(&packet.facts);
    // SAFETY: the value is not read.
    u32::from(unsafe { OWN_CONNECTIONS.get(ends) }.is_some())
}
