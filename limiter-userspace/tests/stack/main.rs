//! What Linux's network stack delivers, and what the limiter takes it for.
//!
//! Each frame goes to a plain host in a network namespace. What a socket of it gets has to be
//! what the limiter has judged: from that source, of that protocol, with those ports. The first
//! tests ask this of the parser, with nothing in front of the host; then the daemon stands there,
//! has banned who sends, and no socket may get anything. Needs root.

mod build;
mod encapsulation;
mod fragments;
mod headers;
mod host;
mod limited;
mod oracle;
mod random;
mod tags;
