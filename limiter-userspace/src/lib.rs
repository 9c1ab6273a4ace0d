//! The implementation of the `limiter` command.

#[expect(
    clippy::disallowed_methods,
    reason = "a command asks once what time it is"
)]
pub mod cli;
