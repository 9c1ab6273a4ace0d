//! The properties of a strategy, for packets, people and policies.

use crate::strategy::{Strategy, rule::Rule as _};
#[cfg(not(target_arch = "bpf"))]
use crate::strategy::{Terms, rule::Ledger};

impl Strategy {
    /// Whether a bucket has a [log](crate::strategy::moving_window::Log) of stamps.
    #[must_use]
    #[inline(always)]
    pub const fn has_log(self) -> bool {
        dispatch!(self, Rule => Rule::HAS_LOG)
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Strategy {
    /// The name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        dispatch!(self, Rule => Rule::NAME)
    }

    /// The largest count of a limit. For GCRA, only the rate of refilling bounds it.
    #[must_use]
    pub const fn largest_count(self) -> u64 {
        dispatch!(self, Rule => Rule::LARGEST_COUNT)
    }

    /// The end of the message "at most [`Self::largest_count`] for this strategy": the reason, and
    /// a strategy that counts more.
    #[must_use]
    pub const fn above_largest_count(self) -> &'static str {
        dispatch!(self, Rule => Rule::ABOVE_LARGEST_COUNT)
    }

    /// The longest period of a limit, in nanoseconds.
    #[must_use]
    pub const fn longest_period(self) -> u64 {
        dispatch!(self, Rule => Rule::LONGEST_PERIOD)
    }

    /// Whether a limit has a burst besides its count, because its buckets refill. Other strategies
    /// admit only the count.
    #[must_use]
    pub const fn has_burst(self) -> bool {
        dispatch!(self, Rule => Rule::HAS_BURST)
    }

    /// The reason why a limit cannot count bytes, and a strategy that can; `None`: it can.
    #[must_use]
    pub const fn why_no_bytes(self) -> Option<&'static str> {
        dispatch!(self, Rule => Rule::WHY_NO_BYTES)
    }

    /// The reason why a limit cannot reserve a part of its buckets for sources of a higher
    /// standing, and a strategy that can; `None`: it can.
    #[must_use]
    pub const fn why_no_reserve(self) -> Option<&'static str> {
        dispatch!(self, Rule => Rule::WHY_NO_RESERVE)
    }

    /// The reason why a limit cannot have an automatic rate, and a strategy that can; `None`: it
    /// can.
    #[must_use]
    pub const fn why_no_automatic(self) -> Option<&'static str> {
        dispatch!(self, Rule => Rule::WHY_NO_AUTOMATIC)
    }

    /// The maximum number of tokens that pass in a period, its end excluded, for any level of the
    /// bucket at its start.
    #[must_use]
    pub fn most_in_a_period(self, burst: u64, count: u64) -> u64 {
        dispatch!(self, Rule => Rule::most_in_a_period(burst, count))
    }

    /// Whether a limit of these terms admits every packet that a limit of the `other` terms admits,
    /// if both are charged the same packets.
    #[must_use]
    pub fn admits_all_of(self, terms: &Terms, other: &Terms) -> bool {
        dispatch!(self, Rule => Rule::admits_all_of(terms, other))
    }
}
