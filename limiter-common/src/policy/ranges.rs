//! Sorted ranges, and the search in them: what a policy says of every value of a dimension.

use super::Tables;

/// Steps of the binary search: enough for [`Span::MOST`] ranges.
const SEARCH_STEPS: u32 = 24;

/// The start of a range of values; it ends where the next one of its span starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Range {
    /// The first value's leading 64 bits.
    pub high: u64,
    /// The first value's trailing 64 bits.
    pub low: u64,
    /// What the policy says of the values in it: a class, or a set of limits.
    pub value: u64,
}

impl Range {
    /// Whether `high` and `low` are the range's start or come after it.
    #[inline(always)]
    const fn starts_at_or_before(&self, high: u64, low: u64) -> bool {
        high > self.high || (high == self.high && low >= self.low)
    }
}

/// Which ranges belong to one dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Span {
    /// The index of the first one.
    pub first: u32,
    /// The index behind the last one.
    pub end: u32,
}

impl Span {
    /// The most ranges that a search tells apart.
    pub const MOST: u32 = 1 << SEARCH_STEPS;

    /// Whether there is none.
    #[must_use]
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.first >= self.end
    }
}

/// The value of the last range of a span that starts at or before `high` and `low`; 0 when
/// there is none.
#[inline(always)]
pub fn search<T: Tables>(tables: &T, span: Span, high: u64, low: u64) -> u64 {
    let Span { mut first, mut end } = span;
    let mut value = 0;
    let mut step = 0;
    while step < SEARCH_STEPS && first < end {
        let middle = first + (end - first) / 2;
        let Some(range) = tables.range(middle) else {
            break;
        };
        if range.starts_at_or_before(high, low) {
            value = range.value;
            first = middle + 1;
        } else {
            end = middle;
        }
        step += 1;
    }
    value
}
