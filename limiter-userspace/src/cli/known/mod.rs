//! `limiter know`, `limiter forget` and `limiter known`.

mod change;
pub(super) mod forget;
pub(super) mod know;
pub(super) mod list;
mod parse;
mod print;
mod stream;

const ENDS_WITH_DAEMON: &str =
    "what is known ends with the daemon: it has neither pins (run --pin) nor a state file";
