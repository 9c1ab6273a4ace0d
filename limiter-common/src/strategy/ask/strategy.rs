//! What packets, people and policies ask of a strategy.

use crate::strategy::{Strategy, rule::Rule as _};
#[cfg(not(target_arch = "bpf"))]
use crate::strategy::{Terms, rule::Ledger};

impl Strategy {
    /// Returns whether a bucket has a [log](crate::strategy::moving_window::Log) of stamps.
    #[must_use]
    #[inline(always)]
    pub const fn has_log(self) -> bool {
        ask!(self, Rule => Rule::HAS_LOG)
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Strategy {
    /// Returns the strategy's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ask!(self, Rule => Rule::NAME)
    }

    /// Returns the largest count of a limit; the refilling bounds that of GCRA.
    #[must_use]
    pub const fn largest_count(self) -> u64 {
        ask!(self, Rule => Rule::LARGEST_COUNT)
    }

    /// Returns the end of the message "at most [`Self::largest_count`] for this strategy": why, and
    /// which strategy counts more.
    #[must_use]
    pub const fn above_largest_count(self) -> &'static str {
        ask!(self, Rule => Rule::ABOVE_LARGEST_COUNT)
    }

    /// Returns the longest period of a limit, in nanoseconds.
    #[must_use]
    pub const fn longest_period(self) -> u64 {
        ask!(self, Rule => Rule::LONGEST_PERIOD)
    }

    /// Returns whether a limit has a burst besides its count, because its buckets refill. Other
    /// strategies admit only the count.
    #[must_use]
    pub const fn has_burst(self) -> bool {
        ask!(self, Rule => Rule::HAS_BURST)
    }

    /// Returns why a limit cannot count bytes, and which strategy can; `None`: it can.
    #[must_use]
    pub const fn why_no_bytes(self) -> Option<&'static str> {
        ask!(self, Rule => Rule::WHY_NO_BYTES)
    }

    /// Returns why a limit cannot reserve a part of its buckets for sources of a higher standing,
    /// and which strategy can; `None`: it can.
    #[must_use]
    pub const fn why_no_reserve(self) -> Option<&'static str> {
        ask!(self, Rule => Rule::WHY_NO_RESERVE)
    }

    /// Returns why a limit cannot have an automatic rate, and which strategy can; `None`: it can.
    #[must_use]
    pub const fn why_no_automatic(self) -> Option<&'static str> {
        ask!(self, Rule => Rule::WHY_NO_AUTOMATIC)
    }

    /// Returns the maximum number of tokens that pass in a period, its end excluded, whatever the
    /// bucket holds when the period begins.
    #[must_use]
    pub fn most_in_a_period(self, burst: u64, count: u64) -> u64 {
        ask!(self, Rule => Rule::most_in_a_period(burst, count))
    }

    /// Returns whether a limit of these terms admits every packet that one of the `other` terms
    /// admits, if both are charged the same packets.
    #[must_use]
    pub fn admits_all_of(self, terms: &Terms, other: &Terms) -> bool {
        ask!(self, Rule => Rule::admits_all_of(terms, other))
    }
}
