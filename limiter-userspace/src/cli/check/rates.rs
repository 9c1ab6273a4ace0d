//! Warns of rates that another rate makes redundant.

use std::io::{self, Write};

use limiter_policy::{
    config::rate::text::written,
    policy::{Implied, Policy, Rate, configured_name},
};

/// Names redundant rates on stderr.
pub(super) fn warn(policy: &Policy) {
    let text = |rate: Option<Rate>| {
        let rate = rate.map(|rate| written(rate.count, rate.period_ns));
        rate.unwrap_or_default()
    };
    for Implied { limit, by } in policy.implied() {
        let (rate, other) = (text(limit.default), text(by.default));
        let name = configured_name(&limit.name);
        // If stderr is gone, nobody is left to warn.
        let _ = writeln!(
            io::stderr(),
            "warning: limit {name}: the rate '{rate}' denies nothing that '{other}' admits: leave \
             it out"
        );
    }
}
