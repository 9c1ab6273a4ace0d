//! Everything the `limiter` command is made of.

pub mod cli;
pub mod config;
mod connections;
pub mod control;
pub mod daemon;
pub mod datapath;
pub mod file;
pub mod guard;
pub mod lists;
pub mod logging;
pub mod metrics;
pub mod native;
pub mod policy;
mod prefix;
pub mod replay;
pub mod reputation;
pub mod state;
mod text;
