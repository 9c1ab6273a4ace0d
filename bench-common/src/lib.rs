//! What the benchmark's two sides, in the kernel and outside, agree on.
//!
//! Compiled for BPF too, into the generator, into what it is compared with, and into the
//! benchmark's own build of the limiter: all of them draw their sources by the same code.

#![cfg_attr(not(test), no_std)]

mod client;
mod draw;
mod frame;
mod layout;

pub use client::{CLIENTS, Client, FIRST_PORT, client_source};
pub use draw::Draw;
pub use frame::Frame;
pub use layout::{Layout, Source};

/// What a contender counts, by index.
pub mod counted {
    /// Frames that it let pass.
    pub const PASSED: u32 = 0;
    /// Frames that it dropped.
    pub const DROPPED: u32 = 1;
    /// How many there are.
    pub const COUNT: usize = 2;
}
