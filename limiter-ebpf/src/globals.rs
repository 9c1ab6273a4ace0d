//! What the loader sets before the program is verified: constants to the verifier, so that
//! what is switched off is not there.

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
