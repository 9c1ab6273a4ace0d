//! What the loader sets before the program is verified: constants to the verifier, so that
//! what is switched off is not there.

use core::{arch::asm, cell::UnsafeCell};

use aya_ebpf::Global;
use limiter_common::policy::Shape;

/// How much of everything the policy has.
#[unsafe(no_mangle)]
static SHAPE: Shape = Shape::EMPTY;

/// 1: the program is on trial. The time comes from the map `TRIAL_CLOCK`, and each verdict
/// goes to the map `TRIAL_VERDICT`.
#[unsafe(no_mangle)]
pub(crate) static ON_TRIAL: Global<u8> = Global::new(0);

/// 0: nobody is recorded as an offender.
#[unsafe(no_mangle)]
pub(crate) static RECORDS_OFFENDERS: Global<u8> = Global::new(0);

/// The shape that the loader has put there.
#[inline(always)]
pub(crate) fn shape() -> &'static Shape {
    let mut shape = &raw const SHAPE;
    // SAFETY: no instruction at all: it only makes LLVM forget that it knows what the static
    // was compiled with. The verifier still knows where the pointer leads. A register by name,
    // because any other would have to stand in the text, and for a text that is not empty LLVM
    // says in which line it is: if the next instruction is of another line, the kernel refuses
    // to have two for one.
    unsafe {
        asm!("", inout("r3") shape, options(pure, readonly, nostack, preserves_flags));
    }
    // SAFETY: it is still the static's address.
    unsafe { &*shape }
}

/// A word that is always 0, which the verifier does not know: the section it is in may be
/// written to.
#[unsafe(no_mangle)]
static ZERO: Unknown = Unknown(UnsafeCell::new(0));

#[repr(transparent)]
struct Unknown(UnsafeCell<u64>);

// SAFETY: nobody ever writes to it.
unsafe impl Sync for Unknown {}

/// 0, as a value of which nothing is known.
#[inline(always)]
pub(crate) fn zero() -> u64 {
    // SAFETY: the word is valid and nobody writes to it. Volatile, so that it is read.
    unsafe { ZERO.0.get().read_volatile() }
}
