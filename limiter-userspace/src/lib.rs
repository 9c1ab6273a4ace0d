//! Everything the `limiter` command is made of.

pub mod cli;
mod connections;
pub mod control;
pub mod daemon;
pub mod guard;
pub mod logging;
pub mod metrics;
pub mod protocol;
pub mod replay;
pub mod reputation;
