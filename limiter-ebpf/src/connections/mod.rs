//! Connections open at once, in maps that all instances of the program share.

mod counts;
pub(crate) mod orders;
mod socket;

use aya_ebpf::{bindings::BPF_NOEXIST, btf_maps::HashMap, macros::btf_map, programs::XdpContext};
use limiter_common::{
    connection::{self, Ends, Places},
    decide::Workspace,
};

use crate::{buckets::BucketLocation, globals, tables::MapTables};

/// Where each open connection is counted, by its socket's cookie. The loader sets the capacity.
#[btf_map]
static CONNECTIONS: HashMap<u64, Places, 1> = HashMap::new();

/// Notes which limits have no room for the connection that the workspace's packet would open.
///
/// What refuses the first segment refuses the last one of a handshake, too: otherwise those that
/// were let in together would all become connections.
#[inline(always)]
pub(crate) fn note_full(context: &XdpContext, workspace: &mut Workspace<BucketLocation>) {
    let mut full = limiter_full_connections(workspace);
    if !workspace.is_first_segment() {
        full &= !globals::shape().observing;
        if full != 0 && !socket::is_opening(context, workspace.facts()) {
            full = 0;
        }
    }
    workspace.set_full(full);
}

/// Calls [`Workspace::full_limits`].
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_full_connections(workspace: *const Workspace<BucketLocation>) -> u64 {
    // Older verifiers walk this function even if the policy has no such limits.
    if globals::shape().connections == 0 {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the workspace is
    // this CPU's, and the caller does not change it meanwhile.
    match unsafe { workspace.as_ref() } {
        Some(workspace) => workspace.full_limits(&MapTables, counts::open),
        None => 0,
    }
}

/// Returns where the policy has a connection counted.
#[inline(always)]
fn places(ends: &Ends) -> Places {
    if ends.are_both_own() {
        Places::NONE
    } else {
        connection::places(&MapTables, ends)
    }
}

/// Counts an open connection, unless it is counted already.
#[inline(always)]
pub(crate) fn opened(cookie: u64, ends: &Ends) {
    note(cookie, counts::added(places(ends)));
}

/// Notes where a connection was counted; takes it off if it is noted already, or there is no room.
#[inline(always)]
fn note(cookie: u64, places: Places) {
    if places.are_none() {
        return;
    }
    match CONNECTIONS.insert(cookie, places, u64::from(BPF_NOEXIST)) {
        Ok(()) => {}
        Err(error) => {
            counts::take_off(&places);
            if error != ALREADY_THERE {
                counts::uncounted();
            }
        }
    }
}

/// `-EEXIST`: somebody else was faster.
const ALREADY_THERE: i32 = -17;

/// Takes a closed connection off, if it was counted.
#[inline(always)]
pub(crate) fn closed(cookie: u64) {
    if let Some(places) = noted(cookie) {
        forget(cookie, &places);
    }
}

/// Returns where a connection was counted, if it was.
#[inline(always)]
fn noted(cookie: u64) -> Option<Places> {
    // SAFETY: elements are never changed, and one that is removed meanwhile is not removed twice.
    unsafe { CONNECTIONS.get(cookie) }.copied()
}

/// Takes a connection off where it was counted, unless somebody else has done so.
#[inline(always)]
fn forget(cookie: u64, places: &Places) {
    if CONNECTIONS.remove(cookie).is_ok() {
        counts::take_off(places);
    }
}

/// Returns whether the policy counts connections.
#[inline(always)]
pub(crate) fn are_counted() -> bool {
    globals::shape().connections != 0
}
