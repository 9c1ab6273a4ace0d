//! Lists: where their addresses come from.
//!
//! A list has prefixes in the configuration itself, and feed files. A feed file is read by itself
//! ([`read_file`]), at any time, whatever the configuration; what all of them hold makes the list
//! ([`ListSource::list`]).

mod feed;
mod read;
mod report;
mod source;

pub use self::{
    feed::{Content, ParseError, parse},
    read::{Feed, FeedError, Refusal, read, read_file},
    report::{BadLine, FeedReport},
    source::{Format, ListSource, WhenStale},
};
