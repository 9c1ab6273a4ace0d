//! What is to be limited, and how: configurations, the lists that they name, and the policy that
//! they come to, compiled to the tables that the datapath reads.
//!
//! Nothing here knows a kernel or a machine: how many CPUs there are is an argument, and the same
//! configuration compiles to the same tables everywhere.

#![forbid(unsafe_code)]

pub mod config;
pub mod file;
pub mod lists;
pub mod policy;
pub mod prefix;
pub mod text;
