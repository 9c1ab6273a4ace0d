//! Lists: where their addresses come from.
//!
//! A list has prefixes in the configuration itself, and feed files. A feed file is read by itself
//! ([`read_file`]), at any time, whatever the configuration; what all of them hold makes the list
//! ([`ListSource::list`]).

mod feed;
mod findings;
mod read;
mod record;
mod report;
mod source;
mod status;

pub use self::{
    feed::{Content, ParseError, parse},
    findings::{Extent, Extents, Findings, LimitFinding, ListFinding, UsedBy},
    read::{Feed, FeedError, Refusal, read, read_file},
    record::ListRecord,
    report::{BadLine, FeedReport},
    source::{Format, ListSource, WhenStale},
    status::{FeedStatus, ListState, ListStatus},
};
