//! Warns of limits that ban sources which anybody can forge.

use limiter_host::guard::forged;
use limiter_policy::policy::Policy;

use crate::cli::output;

pub(super) fn warn(policy: &Policy) {
    for ban in forged::bans(policy) {
        output::warn(&ban);
    }
}
