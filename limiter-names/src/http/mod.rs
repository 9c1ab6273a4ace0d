//! HTTP without TLS, in the two versions that run over TCP.

mod hpack;
pub(crate) mod one;
pub(crate) mod two;
