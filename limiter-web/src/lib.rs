//! The daemon's metrics and page over HTTP, each on a thread of its own.

#![forbid(unsafe_code)]

#[cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests begin at some time")
)]
mod fresh;
#[cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests measure how long it takes")
)]
mod http;
#[expect(clippy::disallowed_methods, reason = "a scrape has a time")]
pub mod metrics;
#[expect(
    clippy::disallowed_methods,
    reason = "the content of a page has a time"
)]
pub mod page;
mod visitors;
