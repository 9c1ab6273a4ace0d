//! Invariants for any input: a module for each fuzz target.
//!
//! A target is a function of bytes that panics when an invariant fails. It is here, and
//! `fuzz_targets/` only turns it into a program, so that an ordinary test can run it on inputs that
//! once failed (`regressions/`).

#![expect(
    clippy::missing_panics_doc,
    reason = "a target panics when an invariant fails, which is its purpose"
)]

pub mod capture;
pub mod config;
pub mod decision;
pub mod feed;
pub mod frame;
pub mod hello;
pub mod question;

mod program;
#[cfg(test)]
mod regressions;

pub use program::run_on_files;

/// A target's name, which is also its file's name in `fuzz_targets/`, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 7] = [
    ("capture", capture::run),
    ("config", config::run),
    ("decision", decision::run),
    ("feed", feed::run),
    ("frame", frame::run),
    ("hello", hello::run),
    ("question", question::run),
];
