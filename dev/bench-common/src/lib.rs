//! What the benchmark's two sides, in the kernel and outside, agree on.
//!
//! Compiled for BPF too, into the generator, into what it is compared with, and into the
//! benchmark's own build of the limiter: all of them draw their sources by the same code.

#![cfg_attr(not(test), no_std)]

mod client;
mod draw;
mod frame;
mod layout;

pub use client::{CLIENTS, Client, FIRST_PORT, LAST_PORT, client_source};
pub use draw::{Draw, Sink};
pub use frame::Frame;
pub use layout::{Layout, Source};
