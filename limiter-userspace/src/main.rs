//! The `limiter` command.
fn main() {}
