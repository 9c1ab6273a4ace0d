//! Lists: where their addresses come from.

mod findings;
mod source;

pub use self::findings::{
    Extent, Extents, Findings, LimitFinding, ListAction, ListFinding, ListUse,
};
pub use self::source::{Format, ListSource, WhenStale};
