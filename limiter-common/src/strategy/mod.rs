//! Strategies: the rules by which limits hold their owners to a count and a period.
//!
//! A strategy is a file, or a folder like GCRA's. Its type implements [`rule::Rule`], how it
//! decides, and [`rule::Ledger`], what people ask of it. Another type implements [`rule::State`]
//! and [`rule::Debt`], what its states are worth; strategies may share that type. Only this file
//! knows the types of each strategy. Others ask a [`Strategy`], a [`Parameters`], a [`Spend`] or a
//! [`Unit`].

/// Evaluates an expression with the type of a strategy's rule under the caller's name for it.
macro_rules! ask {
    ($strategy:expr, $Rule:ident => $answer:expr) => {
        match $strategy {
            $crate::strategy::Strategy::Gcra => {
                type $Rule = $crate::strategy::gcra::GenericCellRate;
                $answer
            }
            $crate::strategy::Strategy::FixedWindow => {
                type $Rule = $crate::strategy::fixed_window::FixedWindow;
                $answer
            }
            $crate::strategy::Strategy::MovingWindow => {
                type $Rule = $crate::strategy::moving_window::MovingWindow;
                $answer
            }
            $crate::strategy::Strategy::SlidingWindowCounter => {
                type $Rule = $crate::strategy::sliding_window_counter::SlidingWindowCounter;
                $answer
            }
        }
    };
}

/// Does the same with the type of a strategy's states. It is a separate match, because strategies
/// share that type: to the kernel's verifier, two branches that do the same are two paths.
macro_rules! ask_state {
    ($strategy:expr, $State:ident => $answer:expr) => {
        match $strategy {
            $crate::strategy::Strategy::Gcra => {
                type $State = $crate::strategy::gcra::Tat;
                $answer
            }
            $crate::strategy::Strategy::FixedWindow
            | $crate::strategy::Strategy::SlidingWindowCounter => {
                type $State = $crate::strategy::window::Counts;
                $answer
            }
            $crate::strategy::Strategy::MovingWindow => {
                type $State = $crate::strategy::moving_window::Cursor;
                $answer
            }
        }
    };
}

mod fixed_window;
pub mod gcra;
mod layout;
mod level;
pub mod moving_window;
#[cfg(test)]
mod one_bucket;
mod parameters;
mod rule;
mod sliding_window_counter;
mod spend;
#[cfg(not(target_arch = "bpf"))]
mod terms;
mod unit;
mod window;

#[cfg(not(target_arch = "bpf"))]
use self::rule::Ledger;
#[cfg(not(target_arch = "bpf"))]
pub use self::terms::Terms;
pub use self::{
    layout::Layout,
    level::{Level, Report},
    parameters::{LargerThanBudget, Parameters},
    spend::{Decision, NEVER, Spend},
    unit::Unit,
    window::Window,
};

/// The number that is no state of any strategy: stores may lock a bucket with it.
pub const NO_STATE: u64 = u64::MAX;

macro_rules! strategies {
    ($($(#[$meta:meta])* $strategy:ident = $number:literal,)+) => {
        /// The rule by which a limit decides. Data that is kept from one policy to the next
        /// contains the numbers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize),
            serde(rename_all = "kebab-case")
        )]
        pub enum Strategy {
            $($(#[$meta])* $strategy = $number,)+
        }

        impl Strategy {
            /// Every strategy, in the order of the numbers.
            pub const ALL: [Self; [$($number),+].len()] = [$(Self::$strategy),+];

            /// Returns the strategy of that number; `None`: there is none.
            #[must_use]
            #[inline(always)]
            pub const fn of_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$strategy),)+
                    _ => None,
                }
            }
        }
    };
}

strategies! {
    /// The generic cell rate algorithm: a bucket of `burst` tokens that refills evenly.
    #[default]
    Gcra = 0,
    /// At most `count` in the period that the first packet starts.
    FixedWindow = 1,
    /// At most `count` in any period, by a log of the last packets.
    MovingWindow = 2,
    /// At most `count` in the current window plus a share of the previous one.
    SlidingWindowCounter = 3,
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

    /// Returns whether a bucket has a [log](moving_window::Log) of stamps.
    #[must_use]
    pub const fn has_log(self) -> bool {
        ask!(self, Rule => Rule::HAS_LOG)
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

#[cfg(test)]
mod tests {
    use super::{Layout, Strategy};

    #[test]
    fn an_unknown_number_is_no_strategy() {
        for (number, strategy) in (0..).zip(Strategy::ALL) {
            assert_eq!(Strategy::of_number(number), Some(strategy));
        }
        let known = u8::try_from(Strategy::ALL.len()).expect("fewer than numbers");
        for unknown in known..=u8::MAX {
            assert_eq!(Strategy::of_number(unknown), None);
            assert_eq!(Layout::from_parts([unknown, 0, 0, 0]), None);
            assert_eq!(Layout::from_parts([unknown, 0, 4, 0]), None);
        }
    }

    #[test]
    fn names_tell_strategies_apart() {
        for (position, strategy) in Strategy::ALL.iter().enumerate() {
            let mut others = Strategy::ALL[position + 1..].iter();
            assert!(others.all(|other| other.name() != strategy.name()));
        }
    }
}
