//! Compares Linux's network stack with the limiter's parser.
//!
//! Each frame goes to a plain host in a network namespace. The source, protocol and ports that a
//! socket receives must be the ones that the limiter judged. The first tests check the parser
//! alone, without a limiter on the host. Later tests run the daemon with the sources banned, and no
//! socket may receive anything. Needs root.

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
