//! `limiter ban`, `limiter unban` and `limiter bans`.

pub(super) mod ban;
mod change;
pub(super) mod list;
mod parse;
mod stream;
mod terms;
pub(super) mod unban;
