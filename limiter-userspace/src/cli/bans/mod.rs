//! `limiter ban`, `limiter unban` and `limiter bans`.

pub(super) mod ban;
mod change;
pub(super) mod list;
pub(super) mod parse;
mod stream;
pub(super) mod terms;
pub(super) mod unban;

const ENDS_WITH_DAEMON: &str =
    "bans end with the daemon: it has neither pins (run --pin) nor a state file";
