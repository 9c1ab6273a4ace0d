//! Warns of rates that another rate makes redundant.

use limiter_policy::{
    config::rate::text::written,
    policy::{Policy, Rate, RedundantLimit, configured_name},
};

use crate::cli::output;

pub(super) fn warn(policy: &Policy) {
    let text = |rate: Option<Rate>| {
        let rate = rate.map(|rate| written(rate.count, rate.period_ns));
        rate.unwrap_or_default()
    };
    for RedundantLimit { limit, by } in policy.redundant_limits() {
        let (rate, other) = (text(limit.default), text(by.default));
        let name = configured_name(&limit.name);
        output::warn(&format!(
            "limit {name}: the rate '{rate}' denies nothing that '{other}' admits: leave it out"
        ));
    }
}
