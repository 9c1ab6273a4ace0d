//! Watches the daemon's changing surroundings: interfaces and configuration files.

pub mod files;
pub(super) mod interfaces;
pub(super) mod problems;
