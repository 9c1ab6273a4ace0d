//! Decisions about sources by their behaviour, beyond their budgets: pure functions without clocks or maps.

#![forbid(unsafe_code)]

pub mod automatic;
pub mod pressure;
pub mod sieve_lists;
