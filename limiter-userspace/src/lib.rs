//! Everything the `limiter` command is made of.

pub mod config;
pub mod policy;
