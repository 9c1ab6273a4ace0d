//! Answers, byte by byte, and their properties for any frame. Another parser computes the checksums.

mod dns_cookies;
mod examples;
mod properties;
mod refused;
mod scene;
mod syn_cookies;
