//! What the loader sets before the program is verified: constants to the verifier, so that
//! what is switched off is not there.

use core::cell::UnsafeCell;

use aya_ebpf::Global;

/// Which block of reason counters this instance counts in: one for each interface.
#[unsafe(no_mangle)]
pub(crate) static INTERFACE: Global<u32> = Global::new(0);

/// How many limits the policy has.
#[unsafe(no_mangle)]
pub(crate) static LIMIT_COUNT: Global<u32> = Global::new(0);

/// How many ranges of IPv4 addresses the policy has.
#[unsafe(no_mangle)]
pub(crate) static RANGE_COUNT_V4: Global<u32> = Global::new(0);

/// How many ranges of IPv6 addresses the policy has.
#[unsafe(no_mangle)]
pub(crate) static RANGE_COUNT_V6: Global<u32> = Global::new(0);

/// 1: the time comes from the map `TEST_CLOCK`.
#[unsafe(no_mangle)]
pub(crate) static TEST_CLOCK_ENABLED: Global<u8> = Global::new(0);

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
