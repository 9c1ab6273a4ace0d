//! The decision core.
#![no_std]
pub mod limit;
