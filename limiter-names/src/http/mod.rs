//! HTTP without TLS, of both kinds that TCP carries.

mod hpack;
pub(crate) mod one;
pub(crate) mod two;
