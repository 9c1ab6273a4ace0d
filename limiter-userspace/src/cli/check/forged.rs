//! Warns of limits that ban sources which anybody can forge.

use std::io::{self, Write as _};

use limiter_policy::policy::Policy;

use crate::guard::forged;

/// Names such limits on stderr.
pub(super) fn warn(policy: &Policy) {
    for ban in forged::bans(policy) {
        // If stderr is gone, nobody is left to warn.
        let _ = writeln!(io::stderr(), "warning: {ban}");
    }
}
