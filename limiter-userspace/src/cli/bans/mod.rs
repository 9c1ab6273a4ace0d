//! `limiter ban`, `limiter unban` and `limiter bans`.

pub(super) mod ban;
mod change;
pub(super) mod list;
mod parse;
mod stream;
mod terms;
pub(super) mod unban;

const ENDS_WITH_DAEMON: &str =
    "bans end with the daemon: it has neither pins (run --pin) nor a state file";
