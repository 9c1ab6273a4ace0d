//! Code shared by the benchmark's kernel side and userspace side.
//!
//! Also compiled for BPF: into the generator, the programs to compare with, and the benchmark's
//! build of the limiter. All of them draw their sources by the same code.

#![cfg_attr(not(test), no_std)]

mod client;
mod draw;
mod forge;
mod frame;
mod layout;
mod origin;
mod pace;

pub use client::{CLIENTS, Client, FIRST_PORT, LAST_PORT, client_source};
pub use draw::{Draw, Sink};
pub use forge::{FORGE_SENT, FORGE_WORDS, Forge, Times};
pub use frame::Frame;
pub use layout::{Layout, Source};
pub use origin::{BOTS, Group, KNOWN, Origin, VICTIMS, is_near, random};
pub use pace::{LONGEST_BURST_NS, Pace};
