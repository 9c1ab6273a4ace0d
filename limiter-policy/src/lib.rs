//! Configurations, the lists that they name, and the policies that they make, compiled to the datapath's
//! tables.
//!
//! This crate does not depend on a kernel or a machine: the number of CPUs is an argument, and the same
//! configuration compiles to the same tables everywhere.

#![forbid(unsafe_code)]

pub mod config;
pub mod file;
pub mod fleet;
pub mod fraction;
pub mod interface;
pub mod lists;
pub mod policy;
pub mod prefix;
pub mod secrets;
mod target;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
