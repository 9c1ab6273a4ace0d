//! Lists: where their addresses come from.
//!
//! A list has prefixes in the configuration itself, and feed files. Feed files are read by
//! themselves ([`read()`]), at any time, whatever the configuration; what all of them hold makes the
//! list ([`ListSource::list`]).

mod bounds;
mod coverage;
mod feed;
mod findings;
mod format;
mod read;
mod record;
mod report;
mod source;
mod status;

use std::collections::BTreeMap;

pub use self::{
    bounds::{Baseline, Bounds, Excess, Growth},
    coverage::{Coverage, InvalidShare, Share},
    feed::{Content, MOST_PREFIXES, ParseError, parse},
    findings::{Extent, Extents, Findings, LimitFinding, ListFinding, UsedBy},
    format::Format,
    read::{FeedError, Look, Refusal, read},
    record::ListRecord,
    report::{BadLine, Feed, FeedReport},
    source::{ListSource, WhenStale},
    status::{FeedStatus, ListState, ListStatus},
};

/// What was read of feed files, by the name of the list.
pub type Feeds = BTreeMap<String, Vec<Feed>>;
