//! The standing of a prefix, by a policy's lists and the records of sources.

use limiter_common::{
    address::Family,
    ban::BanKey,
    policy::{Class, classify},
    standing::{Moment, Record, SourceId, Standing},
};
use limiter_policy::policy::CompiledPolicy;

/// Returns the standing of a prefix by what `record` returns of its source; a prefix with several
/// sources is unknown.
pub(crate) fn standing_of(
    policy: &CompiledPolicy,
    prefix: &BanKey,
    at: &Moment<'_>,
    record: impl FnOnce(SourceId) -> Record,
) -> Standing {
    let address = prefix.address();
    let source_length = match address.family {
        Family::V4 => 32,
        Family::V6 => at.settings.ipv6_prefix,
    };
    if u32::from(prefix.prefix_length()) < source_length {
        return Standing::Unknown;
    }
    if classify(policy, &address).is_some_and(Class::is_proven) {
        return Standing::Proven;
    }
    record(SourceId::new(at.settings, &address)).standing(at)
}
