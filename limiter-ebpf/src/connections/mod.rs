//! Counts of open connections, in maps that all instances of the program share.

mod counts;
mod crowding;
pub(crate) mod handshakes;
mod notes;
pub(crate) mod orders;
mod queues;
mod words;

use aya_ebpf::programs::XdpContext;
use limiter_common::{
    connection::{
        self, Ends, Entrance, Place, Places, Refusals,
        queue::{Flow, Turn},
    },
    decide::Workspace,
    packet::NameMatch,
};

use crate::{buckets::BucketLocation, globals, server_names, socket, tables::MapTables};

/// Records the limits without room for the connection that the workspace's packet would open.
///
/// A limit without room refuses the last segment of a handshake just like the first one: otherwise all handshakes
/// admitted together would become connections.
#[inline(always)]
pub(crate) fn note_full(context: &XdpContext, workspace: &mut Workspace<BucketLocation>) {
    let shape = globals::shape();
    // Most packets of most policies return here: a call takes ten nanoseconds.
    if !workspace.may_be_refused(shape) {
        return workspace.set_refusals(Refusals::default());
    }
    let opens = workspace.opens(shape);
    if !opens && !crowding::may_overshoot(workspace.now_ns()) {
        return workspace.set_refusals(Refusals::default());
    }
    let mut full = limiter_full_connections(workspace);
    if !opens {
        full &= !shape.observing;
        if full != 0 && !socket::state(context, workspace.facts()).may_open() {
            full = 0;
        }
    }
    let refusals = if opens && shape.queueing != 0 {
        let entrance = MapEntrance { workspace };
        workspace.stand_in_line(&MapTables, full, &entrance)
    } else {
        let waiting = full & shape.queueing;
        Refusals { full, waiting }
    };
    workspace.set_refusals(refusals);
    if workspace.is_made_to_wait(shape) {
        limiter_make_wait(workspace);
    }
}

/// Marks the connection of the workspace's packet as waiting for its place; returns 0.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_make_wait(workspace: *const Workspace<BucketLocation>) -> u64 {
    // Older verifiers walk this function even if the policy has no such limits.
    if globals::shape().named_connections() == 0 {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the workspace is
    // this CPU's, and the caller does not change it meanwhile.
    if let Some(workspace) = unsafe { workspace.as_ref() } {
        server_names::make_wait(&workspace.ends());
    }
    0
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

/// Calls [`Workspace::connection_hash`].
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_connection_hash(workspace: *const Workspace<BucketLocation>) -> u64 {
    // SAFETY: as above.
    match unsafe { workspace.as_ref() } {
        Some(workspace) => workspace.connection_hash(&MapTables),
        None => 0,
    }
}

/// Reads the maps, by functions that the verifier walks once.
struct MapEntrance<'w> {
    workspace: &'w Workspace<BucketLocation>,
}

impl Entrance for MapEntrance<'_> {
    #[inline(always)]
    fn place_at(&self, limit_index: u32) -> Option<Place> {
        match limiter_connection_place(self.workspace, limit_index) {
            0 => None,
            place => Some(Place(place)),
        }
    }

    #[inline(always)]
    fn open(&self, place: Place) -> u64 {
        counts::open(place)
    }

    #[inline(always)]
    fn waiting(&self, index: usize, place: Place) -> u64 {
        queues::waiting(index, place, self.workspace.now_ns())
    }

    #[inline(always)]
    fn turn(&self, index: usize, place: Place, room: u64) -> Turn {
        let connection = limiter_connection_hash(self.workspace);
        let flow = Flow::new(connection, globals::shape().queues[index].limit);
        queues::turn(index, place, flow, room, self.workspace.now_ns())
    }
}

/// Calls [`Workspace::place_at`]; returns 0 for none.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_connection_place(
    workspace: *const Workspace<BucketLocation>,
    limit_index: u32,
) -> u64 {
    // As above.
    if globals::shape().queueing == 0 {
        return 0;
    }
    // SAFETY: as above.
    let workspace = unsafe { workspace.as_ref() };
    workspace
        .and_then(|workspace| workspace.place_at(&MapTables, limit_index))
        .map_or(0, |place| place.0)
}

/// Counts an open connection at the places that the policy gives it, and only there. It has no effect on one already
/// counted there.
#[inline(always)]
pub(crate) fn opened(cookie: u64, ends: &Ends) {
    settle(cookie, ends);
    crowding::record_full(ends);
    queues::leave(ends, false);
}

/// [`opened`] for a connection that another CPU may be giving its place by name at the same moment.
#[inline(always)]
pub(crate) fn recount(cookie: u64, ends: &Ends) {
    for _ in 0..2 {
        settle(cookie, ends);
        // If the other CPU has given the connection its place since this one read it, settling has removed that count.
        // To settle a connection twice that was in service before changes nothing.
        if limiter_is_in_service(ends) == 0 {
            break;
        }
    }
    crowding::record_full(ends);
    queues::leave(ends, false);
}

/// Gives the connection of the workspace's packet its place by name. It is marked as in service first: so a CPU that
/// settles it at the same time sees the mark, or settles before.
#[inline(always)]
pub(crate) fn take_place(workspace: &Workspace<BucketLocation>) {
    if globals::shape().named_connections() == 0 {
        return;
    }
    let ends = workspace.ends();
    if let Some(cookie) = server_names::serve(&ends) {
        settle(cookie, &ends);
        queues::leave(&ends, true);
    }
}

#[inline(always)]
fn settle(cookie: u64, ends: &Ends) {
    let mut places = Places::NONE;
    let (limits, name) = (limiter_limits_of_name(ends), limiter_number_of_name(ends));
    limiter_find_places(ends, limits, name, &raw mut places);
    notes::settle(cookie, &places);
}

/// Calls [`server_names::is_in_service`]; returns 1 for true.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_in_service(ends: *const Ends) -> u32 {
    // As above.
    if globals::shape().named_connections() == 0 {
        return 0;
    }
    // SAFETY: as above.
    let ends = unsafe { ends.as_ref() };
    u32::from(ends.is_some_and(server_names::is_in_service))
}

/// The limits that count a connection by its name, once it is in service.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_limits_of_name(ends: *const Ends) -> u64 {
    // SAFETY: as above.
    let ends = unsafe { ends.as_ref() };
    ends.map_or(0, |ends| server_names::counted_as(ends).limits)
}

/// The number of the policy's server name that the connection belongs to.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_number_of_name(ends: *const Ends) -> u64 {
    // SAFETY: as above.
    let ends = unsafe { ends.as_ref() };
    ends.map_or(0, |ends| server_names::counted_as(ends).zone)
}

/// Finds the places of a connection by the policy. `limits` count it by its name, which belongs to the policy's name
/// with the number `name`. Returns 0.
///
/// As above. It has a stack of its own, because it needs much, and its callees too.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_places(
    ends: *const Ends,
    limits: u64,
    name: u64,
    places: *mut Places,
) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the caller owns both and does not
    // use them meanwhile.
    let (ends, places) = unsafe { (ends.as_ref(), places.as_mut()) };
    if let (Some(ends), Some(places)) = (ends.filter(|_| are_counted()), places)
        && !ends.are_both_own()
    {
        let asked = NameMatch {
            limits,
            zone: name,
            ..NameMatch::NOTHING
        };
        connection::find_places(&MapTables, ends, &asked, places);
    }
    0
}

/// Subtracts a closed connection from the counts, if it was counted.
#[inline(always)]
pub(crate) fn closed(cookie: u64) {
    notes::close(cookie);
}

#[inline(always)]
pub(crate) fn are_counted() -> bool {
    globals::shape().connections != 0
}
