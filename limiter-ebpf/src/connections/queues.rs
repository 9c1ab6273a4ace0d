//! The queues of clients that wait for limits on connections, in maps that all instances of the program share.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_NOEXIST},
    btf_maps::{Array, HashMap},
    macros::btf_map,
};
use limiter_common::{
    clock::Clock as _,
    connection::{
        self, CountId, Ends,
        queue::{
            self, OpeningId, Queue, QueueEvent, QueueSettings, QueueTraffic, Queues, Ticket,
            TicketKey, Turn,
        },
    },
    limit::MAX_LIMIT_IDS,
    policy::Tables as _,
    standing::{FIRST_TRIES as IN_LINE, age_of_first_try, first_try_line},
};

use crate::{
    buckets::atomic, clock::KernelClock, globals, standing::first_tries::MapFirstTries,
    tables::MapTables,
};

/// The queues, by their count id. The loader sets the capacity of this map and of the next three.
#[btf_map]
static QUEUES: HashMap<u64, Queue, 1> = HashMap::new();

#[btf_map]
static TICKETS: HashMap<TicketKey, Ticket, 1> = HashMap::new();

/// The names of tickets, by their [`OpeningId`].
#[btf_map]
static TICKET_KEYS: HashMap<u64, TicketKey, 1> = HashMap::new();

/// The first tries to connect. Mappable, like the first tries of sources.
#[btf_map]
static FIRST_SYNS: Array<[u32; IN_LINE + 1], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// Counters of the events in each limit's queues, by its interned id.
#[btf_map]
static QUEUE_TRAFFIC: Array<[u64; WORDS], { MAX_LIMIT_IDS as usize }> = Array::new();

/// The words of a [`QueueTraffic`].
const WORDS: usize = size_of::<QueueTraffic>() / size_of::<u64>();

/// The number of lines of [`FIRST_SYNS`], a power of two.
const FIRST_SYN_LINES: u32 = queue::FIRST_TRY_LINES;

struct MapQueues;

/// The map's queue under a count id.
#[inline(always)]
fn element(count_id: CountId) -> Option<*mut Queue> {
    QUEUES.get_ptr_mut(count_id.0)
}

impl Queues for MapQueues {
    #[inline(always)]
    fn queue(&self, count_id: CountId) -> Queue {
        let Some(queue) = element(count_id) else {
            return Queue::default();
        };
        // SAFETY: an element of the map, and its aligned words are only changed atomically. An element removed
        // meanwhile stays readable.
        unsafe {
            Queue {
                head: atomic::load(&raw const (*queue).head),
                tail: atomic::load(&raw const (*queue).tail),
                limit: atomic::load(&raw const (*queue).limit),
                used_ns: atomic::load(&raw const (*queue).used_ns),
            }
        }
    }

    #[inline(always)]
    fn next_number(&self, settings: &QueueSettings, count_id: CountId, now_ns: u64) -> Option<u64> {
        let queue = if let Some(queue) = element(count_id) {
            queue
        } else {
            let queue = Queue::new(settings, now_ns);
            // If another CPU was faster, its queue is used.
            let _ = QUEUES.insert(count_id.0, queue, u64::from(BPF_NOEXIST));
            element(count_id)?
        };
        // SAFETY: as above.
        unsafe {
            atomic::store(&raw mut (*queue).used_ns, now_ns);
            Some(atomic::count_up(&raw mut (*queue).tail))
        }
    }

    #[inline(always)]
    fn move_up(&self, count_id: CountId, number: u64) {
        if let Some(queue) = element(count_id) {
            // SAFETY: as above.
            unsafe { atomic::compare_and_swap(&raw mut (*queue).head, number, number + 1) };
        }
    }

    #[inline(always)]
    fn key_of(&self, opening_id: OpeningId) -> Option<TicketKey> {
        // SAFETY: elements are replaced as a whole, and this one is copied at once.
        unsafe { TICKET_KEYS.get(opening_id.0) }.copied()
    }

    #[inline(always)]
    fn ticket(&self, key: TicketKey) -> Option<Ticket> {
        // SAFETY: as above.
        unsafe { TICKETS.get(key) }.copied()
    }

    #[inline(always)]
    fn set(&self, key: TicketKey, ticket: &Ticket) -> bool {
        if TICKET_KEYS.insert(ticket.opening_id, key, 0).is_err() {
            return false;
        }
        let is_set = TICKETS.insert(key, ticket, 0).is_ok();
        if !is_set {
            let _ = TICKET_KEYS.remove(ticket.opening_id);
        }
        is_set
    }

    #[inline(always)]
    fn remove(&self, key: TicketKey, opening_id: OpeningId) -> bool {
        let is_removed = TICKETS.remove(key).is_ok();
        if is_removed {
            let _ = TICKET_KEYS.remove(opening_id.0);
        }
        is_removed
    }

    #[inline(always)]
    fn age_of_first_try(&self, opening_id: OpeningId, within_ns: u64, now_ns: u64) -> Option<u64> {
        let line = FIRST_SYNS.get_ptr_mut(first_try_line(opening_id.0, FIRST_SYN_LINES))?;
        let line = MapFirstTries::new(line);
        age_of_first_try(&line, opening_id.0, within_ns, now_ns)
    }

    #[inline(always)]
    fn is_gone(&self, settings: &QueueSettings, key: TicketKey, now_ns: u64) -> bool {
        limiter_is_gone(settings.limit, key.count_id, key.number, now_ns) == 1
    }

    #[inline(always)]
    fn ahead(&self, settings: &QueueSettings, count_id: CountId, number: u64, now_ns: u64) -> u64 {
        limiter_ahead(settings.limit, count_id.0, number, now_ns)
    }

    #[inline(always)]
    fn take_ticket(
        &self,
        settings: &QueueSettings,
        count_id: CountId,
        opening_id: OpeningId,
        age_ns: u64,
        now_ns: u64,
    ) -> bool {
        limiter_take_ticket(settings.limit, count_id.0, opening_id.0, age_ns, now_ns) == 1
    }

    #[inline(always)]
    fn opaque(&self, value: u64) -> u64 {
        MapTables.opaque(value)
    }

    #[inline(always)]
    fn count(&self, settings: &QueueSettings, event: QueueEvent) {
        add(settings, event as usize, 1);
    }

    #[inline(always)]
    fn count_wait(&self, settings: &QueueSettings, wait_ns: u64) {
        let first = core::mem::offset_of!(QueueTraffic, waits) / size_of::<u64>();
        add(settings, first + QueueTraffic::wait_index(wait_ns), 1);
        add(settings, WORDS - 1, wait_ns);
    }
}

/// Adds to a counter of a limit.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "interned ids have 16 bits")]
fn add(settings: &QueueSettings, word: usize, number: u64) {
    const { assert!(WORDS.is_power_of_two(), "as the bound needs") };
    if let Some(counters) = QUEUE_TRAFFIC.get_ptr_mut(settings.limit as u32) {
        let counter = counters.cast::<u64>().wrapping_add(word & (WORDS - 1));
        // SAFETY: a word of the map's element, which is only changed atomically.
        unsafe { atomic::add(counter, number) };
    }
}

/// Calls [`queue::turn`] of the queue at an index, in its two parts, because both together take more stack.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "indices are below eight")]
pub(super) fn turn(
    index: usize,
    count_id: CountId,
    opening_id: OpeningId,
    room: u64,
    now_ns: u64,
) -> Turn {
    let index = index as u32;
    let mut turn = limiter_enter_by_ticket(index, count_id.0, opening_id.0, room, now_ns);
    if turn == NO_TICKET {
        turn = limiter_enter_behind(index, count_id.0, opening_id.0, room, now_ns);
    }
    Turn::of_number(turn)
}

/// In place of a [`Turn`]: the client has no ticket.
const NO_TICKET: u32 = Turn::Later as u32 + 1;

/// The number of clients that wait under a count id, by the queue at an index.
#[inline(always)]
pub(super) fn waiting(index: usize, count_id: CountId, now_ns: u64) -> u64 {
    let settings = &globals::features().queues[index % connection::MOST_LIMITS];
    MapQueues.ahead(settings, count_id, u64::MAX, now_ns)
}

/// Calls [`queue::enter_by_ticket`]; returns the number of the [`Turn`], or [`NO_TICKET`].
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_enter_by_ticket(
    index: u32,
    count_id: u64,
    opening_id: u64,
    room: u64,
    now_ns: u64,
) -> u32 {
    let features = globals::features();
    // Older verifiers walk this function even if the policy has no queues.
    if features.queueing == 0 {
        return 0;
    }
    let settings = &features.queues[index as usize % connection::MOST_LIMITS];
    let (count_id, opening_id) = (CountId(count_id), OpeningId(opening_id));
    match queue::enter_by_ticket(&MapQueues, settings, count_id, opening_id, room, now_ns) {
        Some(turn) => turn as u32,
        None => NO_TICKET,
    }
}

/// Calls [`queue::enter_behind`]; returns the number of the [`Turn`].
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_enter_behind(
    index: u32,
    count_id: u64,
    opening_id: u64,
    room: u64,
    now_ns: u64,
) -> u32 {
    let features = globals::features();
    // As above.
    if features.queueing == 0 {
        return 0;
    }
    let settings = &features.queues[index as usize % connection::MOST_LIMITS];
    let (count_id, opening_id) = (CountId(count_id), OpeningId(opening_id));
    queue::enter_behind(&MapQueues, settings, count_id, opening_id, room, now_ns) as u32
}

/// Calls [`queue::take_ticket`] of the queue of a limit; returns 1 for true.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_take_ticket(
    limit: u64,
    count_id: u64,
    opening_id: u64,
    age_ns: u64,
    now_ns: u64,
) -> u32 {
    let features = globals::features();
    // As above.
    if features.queueing == 0 {
        return 0;
    }
    let settings = &features.queue_of(limit);
    let (count_id, opening_id) = (CountId(count_id), OpeningId(opening_id));
    u32::from(queue::take_ticket(
        &MapQueues, settings, count_id, opening_id, age_ns, now_ns,
    ))
}

/// Calls [`queue::is_gone`] of the queue of a limit; returns 1 for true.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_gone(limit: u64, count_id: u64, number: u64, now_ns: u64) -> u32 {
    let features = globals::features();
    // As above.
    if features.queueing == 0 {
        return 1;
    }
    let settings = &features.queue_of(limit);
    let key = TicketKey { count_id, number };
    u32::from(queue::is_gone(&MapQueues, settings, key, now_ns))
}

/// Calls [`queue::ahead`] of the queue of a limit.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_ahead(limit: u64, count_id: u64, number: u64, now_ns: u64) -> u64 {
    let features = globals::features();
    // As above.
    if features.queueing == 0 {
        return 0;
    }
    let settings = &features.queue_of(limit);
    queue::ahead(&MapQueues, settings, CountId(count_id), number, now_ns)
}

/// Removes an established connection from the queues in which its client waited; from the queues by name only if it is
/// admitted there.
#[inline(always)]
pub(super) fn leave(ends: &Ends, is_admitted: bool) {
    if globals::features().queueing != 0 {
        limiter_leave_queues(ends, is_admitted.into());
    }
}

/// Calls [`queue::established`] of each queue; returns 0.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_leave_queues(ends: *const Ends, is_admitted: u32) -> u32 {
    let features = globals::features();
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else.
    let Some(ends) = (unsafe { ends.as_ref() }).filter(|_| features.queueing != 0) else {
        return 0;
    };
    let connection = ends.hash(&features.hash_key);
    let now_ns = KernelClock.now();
    let left = if is_admitted == 0 {
        features.queueing & !features.by_server_name
    } else {
        features.queueing
    };
    let mut rest = features.connections;
    for settings in &features.queues {
        let bit = rest & rest.wrapping_neg();
        rest ^= bit;
        if left & bit != 0 {
            let opening_id = OpeningId::new(connection, settings.limit);
            queue::established(&MapQueues, settings, opening_id, now_ns);
        }
    }
    0
}

/// Removes expired tickets from the queue under a count id, and the queue if it is unused.
#[inline(always)]
pub(super) fn sweep(count_id: CountId) {
    limiter_sweep_queue(count_id.0);
}

/// Does [`sweep`]; returns 0.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_sweep_queue(count_id: u64) -> u32 {
    // As above.
    if globals::features().queueing == 0 {
        return 0;
    }
    let count_id = CountId(count_id);
    let now_ns = KernelClock.now();
    let settings = globals::features().queue_of(MapQueues.queue(count_id).limit);
    MapQueues.ahead(&settings, count_id, u64::MAX, now_ns);
    if MapQueues.queue(count_id).is_unused(now_ns) {
        let _ = QUEUES.remove(count_id.0);
    }
    0
}
