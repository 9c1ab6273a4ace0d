//! The implementation of the `limiter` command.

pub mod capacity;
#[expect(
    clippy::disallowed_methods,
    reason = "a command asks once what time it is"
)]
pub mod cli;
#[expect(clippy::disallowed_methods, reason = "a listener warns at times")]
mod connections;
#[expect(clippy::disallowed_methods, reason = "a daemon waits for its turn")]
pub mod control;
#[expect(clippy::disallowed_methods, reason = "it runs by clocks")]
pub mod daemon;
pub mod fit;
mod forwarding;
#[cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests begin at some time")
)]
mod fresh;
pub mod guard;
#[cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests measure how long it takes")
)]
mod http;
pub mod logging;
#[expect(clippy::disallowed_methods, reason = "a scrape has a time")]
pub mod metrics;
mod names;
mod netlink;
#[expect(clippy::disallowed_methods, reason = "what a page shows has a time")]
pub mod page;
pub mod protocol;
pub mod replay;
pub mod reputation;
pub mod suggest;
mod syn_cookies;
#[cfg(test)]
mod testing;
mod visitors;
