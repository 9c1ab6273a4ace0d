//! Strategies: the rules by which limits hold their keys to a count and a period.
//!
//! A strategy is a file, or a folder like GCRA's. Its type implements [`rule::Rule`], the decision,
//! and [`rule::Ledger`], the interface for policies and people. Another type implements
//! [`rule::State`] and [`rule::Debt`], the worth of its states; strategies may share that type.
//! Only [`ask`] knows the types of each strategy. Other code uses a [`Strategy`], a [`Parameters`],
//! a [`Spend`] or a [`Unit`].

mod decision;
mod dispatch;
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
mod window_state;

#[cfg(not(target_arch = "bpf"))]
pub use self::terms::Terms;
pub use self::{
    decision::{Decision, NEVER},
    layout::Layout,
    level::{Level, Report},
    parameters::{LargerThanBudget, Parameters},
    spend::Spend,
    unit::Unit,
    window::Window,
};

/// The number that is no strategy's state: tables may lock a bucket with it.
pub const NO_STATE: u64 = u64::MAX;

macro_rules! strategies {
    ($($(#[$meta:meta])* $strategy:ident = $number:literal,)+) => {
        /// The rule by which a limit decides. Data kept from one policy to the next contains the
        /// numbers, so they must not change.
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

            /// The strategy with this number.
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
