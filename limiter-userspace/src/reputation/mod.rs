//! What is made of what sources do, besides their budgets: decisions without a clock or a map.

pub mod automatic;
pub mod lists;
pub mod pressure;
