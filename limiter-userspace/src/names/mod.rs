//! The names that the clients of a capture ask for.

mod collector;
mod direction;
mod summary;

pub(crate) use self::{
    collector::Collector,
    summary::{NameRow, Summary, UnreadRow},
};
