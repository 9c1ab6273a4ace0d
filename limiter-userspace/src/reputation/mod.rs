//! What follows from how sources behave, besides their budgets: decisions without a clock or a map.

pub mod automatic;
pub mod pressure;
pub mod sieve_lists;
