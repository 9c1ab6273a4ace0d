//! What holds for any input: one module for each fuzz target.
//!
//! A target is a function of bytes that panics where something does not hold. It lives here
//! and not in `fuzz_targets/`, which only make a program of it, so that an ordinary test can
//! run it on the inputs that once failed (`regressions/`).

#![expect(
    clippy::missing_panics_doc,
    reason = "a target panics where something does not hold: it is there for nothing else"
)]

pub mod capture;
pub mod config;
pub mod decision;
pub mod feed;
pub mod frame;

mod program;
#[cfg(test)]
mod regressions;

pub use program::run_on_files;

/// A target's name, as that of its file in `fuzz_targets/`, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 5] = [
    ("capture", capture::run),
    ("config", config::run),
    ("decision", decision::run),
    ("feed", feed::run),
    ("frame", frame::run),
];
