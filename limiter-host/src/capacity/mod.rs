//! Automatic rates: finds a limit's rate by the capacity of the server behind the limiter.
//!
//! The host tells when it is overloaded: it counts packets lost because they were not received in time
//! ([`OverloadCounters`]). A limit considers only losses that its own packets may have caused ([`LossFilter`]). The
//! [`Law`] moves its rate by them.

mod cpus;
mod finder;
mod hearing;
mod host_files;
mod law;
mod overload;
mod sockets;
mod work;

pub use self::{
    cpus::CpuTimes,
    finder::{Finder, OverloadCount},
    hearing::{HostLosses, LossFilter},
    host_files::{HostFiles, ReadOverloadError},
    law::{Bounds, EVERY, Interval, Law},
    overload::OverloadCounters,
    sockets::{SocketLosses, UdpSockets},
    work::Work,
};
