//! The names that the clients of a capture ask for.

mod collector;
mod direction;
mod summary;

pub use self::{
    collector::Collector,
    summary::{NameRow, Summary, UnreadRow},
};
