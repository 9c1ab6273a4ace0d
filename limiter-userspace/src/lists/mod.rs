//! Lists: where their addresses come from.

mod findings;
mod record;
mod report;
mod source;

pub use self::findings::{
    Extent, Extents, Findings, LimitFinding, ListAction, ListFinding, ListUse,
};
pub use self::record::{FeedStatus, ListRecord, ListState, ListStatus};
pub use self::report::{BadLine, FeedReport};
pub use self::source::{Format, ListSource, WhenStale};
