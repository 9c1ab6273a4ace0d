//! `limiter trust`, `limiter untrust` and `limiter trusted`.

mod change;
mod parse;
mod print;
mod stream;
pub(super) mod trust;
pub(super) mod trusted;
pub(super) mod untrust;

const ENDS_WITH_DAEMON: &str =
    "trust ends with the daemon: it has neither pins (run --pin) nor a state file";
