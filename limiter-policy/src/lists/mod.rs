//! Lists and the sources of their addresses.
//!
//! A list has prefixes in the configuration, and feed files. Feed files can be read again at any time,
//! without the configuration ([`read()`]). All contents together make the list ([`ListSource::list`]).

mod bounds;
mod coverage;
mod feed;
mod findings;
mod read;
mod record;
mod report;
mod source;
mod status;

use std::collections::BTreeMap;

pub use self::{
    bounds::{Baseline, Bounds, Change, Excess},
    coverage::Coverage,
    feed::{BadLine, Content, Format, MOST_PREFIXES, ParseError, parse},
    findings::{Extent, Extents, Findings, LimitFinding, ListFinding, UseFinding},
    read::{FeedError, ReadContext, Refusal, read},
    record::ListRecord,
    report::{Feed, FeedReport},
    source::{ListSource, WhenStale},
    status::{FeedStatus, ListState, ListStatus},
};

/// The contents of feed files, by the list's name.
pub type Feeds = BTreeMap<String, Vec<Feed>>;
