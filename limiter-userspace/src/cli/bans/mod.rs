//! `limiter ban`, `limiter unban` and `limiter bans`.

pub(super) mod ban;
mod change;
pub(super) mod list;
mod parse;
mod stream;
pub(super) mod unban;
