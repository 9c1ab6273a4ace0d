//! Known sources: proven by one node, believed by all.
//!
//! A node reports only sources that it has proven itself. If it repeated reports of others, two nodes could
//! keep a source known for ever. Each node's word about a source stands beside the others. It travels in
//! [letters](SourceLetter) of two kinds: *news* has the changes; *slots* each have all of the node's words
//! about one part of the sources, for nodes that start.
//!
//! * Each word has an end, and repetitions do not lengthen it ([`Word`]).
//! * The latest of a node's letters wins, so a repeated letter cannot revive a word taken back
//!   ([`SourceMap`]).
//! * [`Sayings`] holds a node's own words.
//!
//! Times are wall-clock times since 1970, since they travel between hosts.

mod letter;
mod map;
mod sayings;
mod word;

pub use self::{
    letter::{MOST_NEWS, MOST_OF_SLOT, Part, SourceLetter, SourceSeal},
    map::{MOST_HEARD, NotHeard, SourceMap},
    sayings::{MOST_SAID, Sayings},
    word::{SLOTS, Slot, Source, Word, WrongWord},
};
