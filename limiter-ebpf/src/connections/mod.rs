//! Counts of open connections, in maps that all instances of the program share.

mod counts;
mod crowding;
mod entries;
pub(crate) mod handshakes;
pub(crate) mod orders;
mod queues;
mod words;

use aya_ebpf::programs::XdpContext;
use limiter_common::{
    connection::{
        self, CountId, CountIds, Ends, Entrance, Refusals,
        queue::{OpeningId, Turn},
    },
    decide::Scratch,
    packet::NameMatch,
};

use crate::{buckets::BucketLocation, globals, server_names, socket, tables::MapTables};

/// Records the limits without room for the connection that the current packet would open.
///
/// A limit without room refuses the last segment of a handshake just like the first one: otherwise all handshakes
/// admitted together would become connections.
#[inline(always)]
pub(crate) fn record_full_limits(context: &XdpContext, scratch: &mut Scratch<BucketLocation>) {
    let features = globals::features();
    // Most packets of most policies return here: a call takes ten nanoseconds.
    if !scratch.may_be_refused(features) {
        return scratch.set_refusals(Refusals::default());
    }
    let opens = scratch.opens(features);
    if !opens && !crowding::may_overshoot(scratch.now_ns()) {
        return scratch.set_refusals(Refusals::default());
    }
    let mut full = limiter_full_connections(scratch);
    if !opens {
        full &= !features.observing;
        if full != 0 && !socket::state(context, scratch.facts()).may_open() {
            full = 0;
        }
    }
    let refusals = if opens && features.queueing != 0 {
        let entrance = MapEntrance { scratch };
        scratch.stand_in_line(&MapTables, full, &entrance)
    } else {
        let waiting = full & features.queueing;
        Refusals { full, waiting }
    };
    scratch.set_refusals(refusals);
    if scratch.is_made_to_wait(features) {
        limiter_make_wait(scratch);
    }
}

/// Marks the connection of the current packet as waiting for admission; returns 0.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_make_wait(scratch: *const Scratch<BucketLocation>) -> u64 {
    // Older verifiers walk this function even if the policy has no such limits.
    if globals::features().named_connections() == 0 {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the scratch memory
    // is this CPU's, and the caller does not change it meanwhile.
    if let Some(scratch) = unsafe { scratch.as_ref() } {
        server_names::make_wait(&scratch.ends());
    }
    0
}

/// Calls [`Scratch::full_limits`].
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_full_connections(scratch: *const Scratch<BucketLocation>) -> u64 {
    // Older verifiers walk this function even if the policy has no such limits.
    if globals::features().connections == 0 {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the scratch memory
    // is this CPU's, and the caller does not change it meanwhile.
    match unsafe { scratch.as_ref() } {
        Some(scratch) => scratch.full_limits(&MapTables, counts::open),
        None => 0,
    }
}

/// Calls [`Scratch::connection_hash`].
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_connection_hash(scratch: *const Scratch<BucketLocation>) -> u64 {
    // SAFETY: as above.
    match unsafe { scratch.as_ref() } {
        Some(scratch) => scratch.connection_hash(&MapTables),
        None => 0,
    }
}

/// Reads the maps, by functions that the verifier walks once.
struct MapEntrance<'w> {
    scratch: &'w Scratch<BucketLocation>,
}

impl Entrance for MapEntrance<'_> {
    #[inline(always)]
    fn count_id_at(&self, limit_index: u32) -> Option<CountId> {
        match limiter_count_id(self.scratch, limit_index) {
            0 => None,
            count_id => Some(CountId(count_id)),
        }
    }

    #[inline(always)]
    fn open(&self, count_id: CountId) -> u64 {
        counts::open(count_id)
    }

    #[inline(always)]
    fn waiting(&self, index: usize, count_id: CountId) -> u64 {
        queues::waiting(index, count_id, self.scratch.now_ns())
    }

    #[inline(always)]
    fn turn(&self, index: usize, count_id: CountId, room: u64) -> Turn {
        let connection = limiter_connection_hash(self.scratch);
        let opening_id = OpeningId::new(connection, globals::features().queues[index].limit);
        queues::turn(index, count_id, opening_id, room, self.scratch.now_ns())
    }
}

/// Calls [`Scratch::count_id_at`]; returns 0 for none.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_count_id(scratch: *const Scratch<BucketLocation>, limit_index: u32) -> u64 {
    // As above.
    if globals::features().queueing == 0 {
        return 0;
    }
    // SAFETY: as above.
    let scratch = unsafe { scratch.as_ref() };
    scratch
        .and_then(|scratch| scratch.count_id_at(&MapTables, limit_index))
        .map_or(0, |count_id| count_id.0)
}

/// Counts an open connection under the count ids that the policy gives it, and only there. It has no effect on one
/// already counted there.
#[inline(always)]
pub(crate) fn opened(cookie: u64, ends: &Ends) {
    settle(cookie, ends);
    crowding::record_full(ends);
    queues::leave(ends, false);
}

/// [`opened`] for a connection that another CPU may be admitting by name at the same moment.
#[inline(always)]
pub(crate) fn recount(cookie: u64, ends: &Ends) {
    for _ in 0..2 {
        settle(cookie, ends);
        // If the other CPU has admitted the connection since this one read it, settling has removed that count.
        // To settle a connection twice that was in service before changes nothing.
        if limiter_is_in_service(ends) == 0 {
            break;
        }
    }
    crowding::record_full(ends);
    queues::leave(ends, false);
}

/// Gives the connection of the current packet its count id by name. It is marked as in service first: so a CPU that
/// settles it at the same time sees the mark, or settles before.
#[inline(always)]
pub(crate) fn admit(scratch: &Scratch<BucketLocation>) {
    if globals::features().named_connections() == 0 {
        return;
    }
    let ends = scratch.ends();
    if let Some(cookie) = server_names::serve(&ends) {
        settle(cookie, &ends);
        queues::leave(&ends, true);
    }
}

#[inline(always)]
fn settle(cookie: u64, ends: &Ends) {
    let mut count_ids = CountIds::NONE;
    let (limits, name) = (limiter_limits_of_name(ends), limiter_number_of_name(ends));
    limiter_find_count_ids(ends, limits, name, &raw mut count_ids);
    entries::settle(cookie, &count_ids);
}

/// Calls [`server_names::is_in_service`]; returns 1 for true.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_in_service(ends: *const Ends) -> u32 {
    // As above.
    if globals::features().named_connections() == 0 {
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

/// Finds the count ids of a connection by the policy. `limits` count it by its name, which belongs to the policy's name
/// with the number `name`. Returns 0.
///
/// As above. It has a stack of its own, because it needs much, and its callees too.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_count_ids(
    ends: *const Ends,
    limits: u64,
    name: u64,
    count_ids: *mut CountIds,
) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the caller owns both and does not
    // use them meanwhile.
    let (ends, count_ids) = unsafe { (ends.as_ref(), count_ids.as_mut()) };
    if let (Some(ends), Some(count_ids)) = (ends.filter(|_| are_counted()), count_ids)
        && !ends.are_both_own()
    {
        let name_match = NameMatch {
            limits,
            zone: name,
            ..NameMatch::NOTHING
        };
        connection::find_count_ids(&MapTables, ends, &name_match, count_ids);
    }
    0
}

/// Subtracts a closed connection from the counts, if it was counted.
#[inline(always)]
pub(crate) fn closed(cookie: u64) {
    entries::close(cookie);
}

#[inline(always)]
pub(crate) fn are_counted() -> bool {
    globals::features().connections != 0
}
