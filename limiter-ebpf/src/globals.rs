//! Globals that the loader sets before verification. They are constants to the verifier, which removes the code they
//! disable.

use core::{arch::asm, cell::UnsafeCell};

use aya_ebpf::{Global, bindings::xdp_md, programs::XdpContext};
use limiter_common::{
    answer::SocketFields,
    attachment_facts::{AttachmentFacts, ProgramFacts, slot},
    connection::RouteFields,
    name_hash::NameKeys,
    policy::Features,
};

/// The features of the policy.
#[unsafe(no_mangle)]
static FEATURES: Features = Features::EMPTY;

/// The offsets of the kernel's fields that decide on the options of connections.
#[unsafe(no_mangle)]
static SOCKET_FIELDS: SocketFields = SocketFields::UNKNOWN;

/// The offsets of the kernel's fields that lead to the device of a socket's route.
#[unsafe(no_mangle)]
static ROUTE_FIELDS: RouteFields = RouteFields::UNKNOWN;

/// The secrets of the hash of names.
#[unsafe(no_mangle)]
static NAME_KEYS: NameKeys = NameKeys::NONE;

/// 1: the program is on trial. It takes the time from the map `TRIAL_CLOCK` and writes each verdict to the map
/// `TRIAL_VERDICT`.
#[unsafe(no_mangle)]
pub(crate) static ON_TRIAL: Global<u8> = Global::new(0);

/// 1: programs may read the kernel's memory.
#[unsafe(no_mangle)]
pub(crate) static READS_KERNEL: Global<u8> = Global::new(0);

/// 0: no offenders are recorded.
#[unsafe(no_mangle)]
pub(crate) static RECORDS_OFFENDERS: Global<u8> = Global::new(0);

#[inline(always)]
pub(crate) fn features() -> &'static Features {
    as_set(&FEATURES)
}

#[inline(always)]
pub(crate) fn socket_fields() -> &'static SocketFields {
    as_set(&SOCKET_FIELDS)
}

#[inline(always)]
pub(crate) fn route_fields() -> &'static RouteFields {
    as_set(&ROUTE_FIELDS)
}

#[inline(always)]
pub(crate) fn name_keys() -> &'static NameKeys {
    as_set(&NAME_KEYS)
}

/// Hides the initial value of a static from LLVM.
#[inline(always)]
fn as_set<T>(global: &'static T) -> &'static T {
    let global = forgotten((&raw const *global).expose_provenance());
    // SAFETY: it is still the static's address.
    unsafe { &*core::ptr::with_exposed_provenance(global) }
}

/// Hides an address from LLVM. The verifier still knows it.
#[inline(always)]
pub(crate) fn forgotten(mut address: usize) -> usize {
    // SAFETY: the text is empty, so it executes no instruction. The register is named explicitly: otherwise the text
    // would have to name it, and LLVM emits line information for a text that is not empty. The kernel refuses two lines
    // for one instruction.
    unsafe {
        asm!("", inout("r3") address, options(pure, readonly, nostack, preserves_flags));
    }
    address
}

/// Values unknown to the verifier, because their section is writable. The loader finds it as the only static there.
#[unsafe(no_mangle)]
static UNKNOWN: OpaqueGlobals =
    OpaqueGlobals(UnsafeCell::new(ProgramFacts::all(AttachmentFacts::of(0))));

#[repr(transparent)]
struct OpaqueGlobals(UnsafeCell<ProgramFacts>);

// SAFETY: no program writes to it; the loader writes aligned words.
unsafe impl Sync for OpaqueGlobals {}

/// 0, but unknown to LLVM and to the verifier.
#[inline(always)]
pub(crate) fn zero() -> u64 {
    // SAFETY: the word is valid and no code writes to it. Volatile, so that it is read.
    unsafe { (&raw const (*UNKNOWN.0.get()).zero).read_volatile() }
}

/// The facts about the interface that a frame came in on. The loader may write them meanwhile.
#[inline(always)]
pub(crate) fn attachment(context: *const xdp_md) -> *const AttachmentFacts {
    // SAFETY: the context is the program's own.
    let index = unsafe { (&raw const (*context).ingress_ifindex).read() };
    // SAFETY: the static is valid, and has each slot; this takes an address.
    unsafe { &raw const (*UNKNOWN.0.get()).slots[slot(index)] }
}

/// The daemon's number for the interface that a frame came in on.
#[inline(always)]
pub(crate) fn interface(context: &XdpContext) -> u32 {
    // SAFETY: a valid word; volatile, because the loader may write meanwhile.
    unsafe { (&raw const (*attachment(context.ctx)).interface).read_volatile() }
}

/// Whether frames to an Ethernet address are answered on the interface that a frame came in on.
#[inline(always)]
pub(crate) fn is_answered(context: &XdpContext, address: u64) -> bool {
    let facts = attachment(context.ctx);
    // SAFETY: the words are valid; volatile, because the loader may write meanwhile.
    let answered = |entry: usize| unsafe { (&raw const (*facts).answered[entry]).read_volatile() };
    address != 0
        && (answered(0) == address
            || answered(1) == address
            || answered(2) == address
            || answered(3) == address)
}
