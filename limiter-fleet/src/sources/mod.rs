//! Known sources: proven by one node, believed by all.
//!
//! A node reports only sources that it has proven itself. If it repeated reports of others, two nodes could
//! keep a source known for ever. Each node's entry about a source stands beside the others. It travels in
//! [messages](SourceMessage) of two kinds: *news* has the changes; *slots* each have all of the node's
//! entries about one part of the sources, for nodes that start.
//!
//! * Each entry has an end, and repetitions do not lengthen it ([`SourceEntry`]).
//! * The latest of a node's messages wins, so a repeated message cannot revive an entry taken back
//!   ([`SourceMap`]).
//! * [`OwnEntries`] holds a node's own entries.
//!
//! Times are wall-clock times since 1970, since they travel between hosts.

mod entry;
mod map;
mod message;
mod own_entries;

pub use self::{
    entry::{SLOTS, Slot, Source, SourceEntry, WrongEntry},
    map::{MOST_RECEIVED_ENTRIES, MessageError, SourceMap},
    message::{MOST_NEWS, MOST_OF_SLOT, Part, SourceAuthenticator, SourceMessage},
    own_entries::{MOST_OWN_ENTRIES, OwnEntries},
};
