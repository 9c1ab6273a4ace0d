//! Facts about the host: the peers that must not lose it, its sockets and routes, the load that its server bears, and
//! whether a policy fits its interfaces.

#![forbid(unsafe_code)]

pub mod capacity;
pub mod fit;
pub mod forwarding;
pub mod guard;
pub mod netlink;
pub mod syn_cookies;
