//! Everything the `limiter` command is made of.

pub mod config;
pub mod datapath;
pub mod native;
pub mod policy;
