//! Known sources: the same to both engines, by handshakes, and to userspace.

mod differential;
mod filter;
mod full;
mod handshakes;
mod known;
mod peers;
mod pinned;
mod reverted;
mod scene;
