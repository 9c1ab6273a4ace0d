//! The compiled policy, in arrays that this instance of the program alone reads.
//!
//! The loader sizes them. A new policy comes with a new instance of the program and new
//! arrays, so no packet is judged by a mixture of two policies.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_RDONLY_PROG},
    btf_maps::Array,
    macros::btf_map,
};
use limiter_common::{
    charge::{self, Charge, Packet, Prepared},
    gcra::Gcra,
    limit::MAX_LIMITS,
    policy::{self, Class, LimitEntry, Masks, Node, Shape, Slot, Stretch, Tables},
};

use crate::globals;

const READ_ONLY: usize = BPF_F_RDONLY_PROG as usize;

#[btf_map]
static LIMITS: Array<LimitEntry, { MAX_LIMITS as usize }, READ_ONLY> = Array::new();

#[btf_map]
static NODES: Array<Node, 1, READ_ONLY> = Array::new();

/// Mappable, because such an array starts at a page: two stretches are a cache line.
#[btf_map]
static STRETCHES: Array<Stretch, 1, { READ_ONLY | BPF_F_MMAPABLE as usize }> = Array::new();

#[btf_map]
static SLOTS: Array<Slot, 1, READ_ONLY> = Array::new();

#[btf_map]
static CLASSES: Array<Class, 2, READ_ONLY> = Array::new();

#[btf_map]
static OVERRIDES: Array<Gcra, 1, READ_ONLY> = Array::new();

#[btf_map]
static MASKS: Array<u64, { Masks::RANGES as usize }, READ_ONLY> = Array::new();

pub(crate) struct MapTables;

/// [`policy::descend`], as a global function of the BPF object: the verifier walks those once,
/// for any arguments, and not once for each call and what it knows there.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_descend(node: u32, high: u64, low: u64) -> u32 {
    policy::descend(&MapTables, node, high, low)
}

/// [`policy::matching`]; a global function likewise.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_match(packet: *const Packet) -> u64 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else.
    match unsafe { packet.as_ref() } {
        Some(packet) => policy::matching(&MapTables, packet),
        None => 0,
    }
}

/// [`charge::prepare`], returning a [`Prepared`] as its number; a global function likewise.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_prepare(packet: *const Packet, slot: u32, charge: *mut Charge) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the two
    // are different variables of the one caller.
    let (Some(packet), Some(charge)) = (unsafe { packet.as_ref() }, unsafe { charge.as_mut() })
    else {
        return Prepared::Nothing as u32;
    };
    charge::prepare(&MapTables, packet, slot, charge) as u32
}

const CHARGE: u32 = Prepared::Charge as u32;
const LARGER_THAN_BURST: u32 = Prepared::LargerThanBurst as u32;

impl Tables for MapTables {
    #[inline(always)]
    fn shape(&self) -> &Shape {
        globals::shape()
    }

    #[inline(always)]
    fn limit(&self, slot: u32) -> Option<&LimitEntry> {
        LIMITS.get(slot)
    }

    #[inline(always)]
    fn node(&self, index: u32) -> Option<&Node> {
        NODES.get(index)
    }

    #[inline(always)]
    fn stretch(&self, index: u32) -> Option<&Stretch> {
        STRETCHES.get(index)
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> Option<&Slot> {
        SLOTS.get(index)
    }

    #[inline(always)]
    fn class(&self, index: u32) -> Option<&Class> {
        CLASSES.get(index)
    }

    #[inline(always)]
    fn override_at(&self, index: u32) -> Option<&Gcra> {
        OVERRIDES.get(index)
    }

    #[inline(always)]
    fn mask(&self, index: u32) -> Option<&u64> {
        MASKS.get(index)
    }

    #[inline(always)]
    fn descend(&self, node: u32, high: u64, low: u64) -> u32 {
        limiter_descend(node, high, low)
    }

    #[inline(always)]
    fn matching(&self, packet: &Packet) -> u64 {
        limiter_match(packet)
    }

    #[inline(always)]
    fn prepare(&self, packet: &Packet, slot: u32, charge: &mut Charge) -> Prepared {
        match limiter_prepare(packet, slot, charge) {
            CHARGE => Prepared::Charge,
            LARGER_THAN_BURST => Prepared::LargerThanBurst,
            _ => Prepared::Nothing,
        }
    }

    #[inline(always)]
    fn opaque(&self, value: u64) -> u64 {
        value ^ globals::zero()
    }
}
