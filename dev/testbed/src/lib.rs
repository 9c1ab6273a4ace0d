//! Network namespaces and traffic for the tests and the demonstration.
//!
//! A [`Pair`] is two anonymous network namespaces joined by a veth pair: `client0` on one side, `server0` on
//! the other. The wire carries only the caller's packets: no neighbour discovery, no router solicitation, no
//! multicast report. The namespaces live as long as their file descriptors, so nothing is left however the
//! process ends.
//!
//! Traffic comes from sockets ([`UdpSource`], [`Connector`]) or as frames byte by byte ([`RawSender`] with
//! [`Frame`]). [`UdpSink`], [`Listener`] and [`RawSink`] count arriving packets per source address;
//! [`IpSockets`] shows the packets that the network stack delivers. A [`Crowd`] of clients wears a server
//! out; [`deafen`] keeps the kernel's responses from a process. A [`Load`] is bounded in count and in time. A
//! [`Tap`] has another driver than a veth pair. [`capture`] builds capture files from frames. An
//! [`Interrupt`] leaves time to tidy up when the user ends the program.
//!
//! A [`Limiter`] runs in a namespace. Its pins are in a [`PinDirectory`], since BPF filesystems do not belong
//! to namespaces.
//!
//! Nothing here may make an interface, an address or a packet outside the namespaces.

pub mod capture;
mod clock;
mod connector;
mod counter;
mod crowd;
mod deaf;
mod disk;
mod dns_cookie;
mod frame;
mod interrupt;
mod ip_sockets;
mod limiter;
mod link;
mod listener;
mod load;
mod namespace;
mod notices;
mod numbers;
mod packet_socket;
mod pair;
mod pin_directory;
mod raw_sender;
mod raw_sink;
mod recorder;
mod socket;
mod softirq;
mod tally;
mod tap;
mod udp_sink;
mod udp_source;

pub use clock::monotonic_ns;
pub use connector::{Attempts, Connector};
pub use crowd::{Crowd, Document, Sizes};
pub use deaf::deafen;
pub use disk::Disk;
pub use dns_cookie::{DNS_COOKIE_LENGTH, dns_cookie, dns_cookie_query};
pub use frame::{Frame, Tag};
pub use interrupt::{INTERRUPTED, Interrupt};
pub use ip_sockets::{Delivery, IpSockets, SocketKind};
pub use limiter::Limiter;
pub use link::{CLIENT_MAC, SERVER_MAC};
pub use listener::Listener;
pub use load::{Load, Progress, SendReport};
pub use namespace::Namespace;
pub use numbers::next_numbers;
pub use pair::{CLIENT_INTERFACE, Pair, SERVER_INTERFACE};
pub use pin_directory::PinDirectory;
pub use raw_sender::RawSender;
pub use raw_sink::RawSink;
pub use recorder::Recorder;
pub use tally::{Count, Tally};
pub use tap::{Tap, Wire};
pub use udp_sink::UdpSink;
pub use udp_source::UdpSource;
