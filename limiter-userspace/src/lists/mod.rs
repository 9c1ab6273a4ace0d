//! Lists: where their addresses come from.

mod source;

pub use self::source::{Format, ListSource, WhenStale};
