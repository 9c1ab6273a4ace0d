//! Offenders, in the kernel's LRU hash map: written when a limit or a sieve drops a packet, never
//! when one passes.

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    btf_maps::{LruHashMap, PerCpuArray},
    macros::btf_map,
};
use limiter_common::{
    classified_packet::ClassifiedPacket,
    offender::{Dropper, Offender, OffenderKey, OffenderTable, RecordOutcome, Recording},
    policy::Tables,
};

use crate::{buckets::atomic, globals, refused_questions, tables::MapTables};

/// The loader sets the capacity.
#[btf_map]
static OFFENDERS: LruHashMap<OffenderKey, Offender, 1> = LruHashMap::new();

#[btf_map]
static RECORDING: PerCpuArray<Recording, 1> = PerCpuArray::new();

/// `-EEXIST`: another CPU was the first to record the offender.
const ALREADY_THERE: i32 = -17;

/// The number of attempts to find or insert an offender: another CPU may insert it in between, and
/// only a far too small map would evict it at once.
const ATTEMPTS: u32 = 3;

pub(crate) struct MapOffenders;

impl OffenderTable for MapOffenders {
    #[inline(always)]
    fn record<T: Tables>(
        &self,
        _tables: &T,
        packet: &ClassifiedPacket,
        limit_index: u32,
        by: Dropper,
    ) {
        if globals::RECORDS_OFFENDERS.load() != 0 {
            limiter_record_offender(packet, limit_index, by as u32);
        }
    }
}

/// Records that the limit with this index or a sieve dropped the packet, as `by` says; returns 0.
///
/// It is a global function of the BPF object: the verifier walks it once, and it does not use the
/// entry point's stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_record_offender(
    packet: *const ClassifiedPacket,
    limit_index: u32,
    by: u32,
) -> u32 {
    let by = if by == Dropper::Sieve as u32 {
        Dropper::Sieve
    } else {
        Dropper::Budget
    };
    // SAFETY: the verifier lets a caller pass null or a whole readable value, nothing else.
    if let Some(packet) = unsafe { packet.as_ref() }
        && let Some(key) = OffenderKey::of_packet(&MapTables, packet, limit_index, by)
        && let Some(recording) = RECORDING.get_ptr_mut(0)
    {
        // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
        let recording = unsafe { &mut *recording };
        let name = OffenderKey::of_packet_name(&MapTables, packet, limit_index, by);
        recording.record(
            packet.now,
            || enter(&key, packet.now),
            || {
                let name = name?;
                if let Some((key_part, _)) = name.name() {
                    refused_questions::report(key_part, packet.now);
                }
                Some(enter(&name, packet.now))
            },
        );
    }
    0
}

#[inline(always)]
fn enter(key: &OffenderKey, now_ns: u64) -> RecordOutcome {
    for _ in 0..ATTEMPTS {
        if let Some(offender) = OFFENDERS.get_ptr_mut(key) {
            // SAFETY: an element of the map: aligned words that stay mapped. Other CPUs add to
            // the drops atomically too; either of two last drops may be kept.
            unsafe {
                atomic::add(&raw mut (*offender).drops, 1);
                (&raw mut (*offender).last_drop_ns).write_volatile(now_ns);
            }
            return RecordOutcome::Again;
        }
        match OFFENDERS.insert(key, Offender::new(now_ns), u64::from(BPF_NOEXIST)) {
            Ok(()) => return RecordOutcome::Anew,
            Err(ALREADY_THERE) => {}
            Err(_) => return RecordOutcome::NoRoom,
        }
    }
    RecordOutcome::NoRoom
}
