//! Watches what the daemon depends on and others change: interfaces and configuration files.

pub mod files;
pub(super) mod interfaces;
pub(super) mod logged;
