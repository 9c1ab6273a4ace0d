//! Known sources: the same to both engines, by handshakes, and to userspace.

mod differential;
mod handshakes;
mod known;
mod scene;
