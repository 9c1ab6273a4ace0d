//! Compares the deliveries of Linux's network stack with the limiter's judgement.
//!
//! Each frame goes to a plain host in a network namespace. A socket must get exactly the judged packet:
//! the same source, protocol and ports. The first tests check the parser, with nothing in front of the
//! host. Then the daemon stands there and has banned the sources, and no socket may get anything. Needs
//! root.

#![expect(
    clippy::disallowed_methods,
    reason = "a test waits for what takes time"
)]

mod build;
mod devices;
mod encapsulation;
mod fragments;
mod headers;
mod host;
mod limited;
mod oracle;
mod random;
mod tags;
