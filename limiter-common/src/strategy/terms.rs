//! The configured terms of a limit.

/// The amount that a limit grants each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The tokens of a full bucket, for strategies that [have a burst](super::Strategy::has_burst);
    /// unused by others.
    pub burst: u64,
    /// The tokens of a period.
    pub count: u64,
    /// The period, in nanoseconds.
    pub period_ns: u64,
}

impl Terms {
    /// The maximum number of the `other` terms' periods that begin in `times` of these, if both
    /// begin together.
    pub(super) fn periods_of(&self, other: &Self, times: u64) -> u128 {
        let period_ns = u128::from(self.period_ns) * u128::from(times);
        period_ns.div_ceil(u128::from(other.period_ns))
    }
}
