//! Limits that ban whomever somebody forges.

use std::io::{self, Write as _};

use limiter_policy::policy::Policy;

use crate::guard::forged;

/// Says on stderr which they are.
pub(super) fn warn(policy: &Policy) {
    for ban in forged::bans(policy) {
        // Nobody is left to be warned when stderr is gone.
        let _ = writeln!(io::stderr(), "warning: {ban}");
    }
}
