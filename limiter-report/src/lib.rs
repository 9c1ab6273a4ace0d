//! Texts and tables about the daemon's answers, for the terminal and the page alike.

#![forbid(unsafe_code)]

pub mod capacity;
pub mod explanation;
pub mod fleet;
pub mod health;
pub mod lists;
pub mod numbers;
pub mod render;
pub mod sieves;
pub mod standing;
