//! What the server behind us can bear: a limit's rate that the daemon finds by itself.
//!
//! The host says when it has too much: it counts the packets that it lost because nobody took them
//! in time ([`Distress`]). A limit [hears](Hearing) what the packets that it counts may have caused.
//! The [`Law`] moves its rate by that.

mod cpus;
mod distress;
mod finder;
mod hearing;
mod host_files;
mod law;
mod sockets;
mod work;

pub use self::{
    cpus::CpuTimes,
    distress::Distress,
    finder::{Finder, Heard},
    hearing::{Hearing, Kind, Seen},
    host_files::{HostFiles, ReadDistressError},
    law::{Bounds, EVERY, Interval, Law},
    sockets::{SocketLosses, UdpSockets},
    work::Work,
};
