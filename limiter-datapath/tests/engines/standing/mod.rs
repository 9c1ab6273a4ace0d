//! The standing of sources: in both engines, by handshakes, and in the hands of userspace.

mod differential;
mod handshakes;
mod known;
mod scene;
