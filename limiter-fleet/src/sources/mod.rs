//! Sources that a node has proven, of which it tells the others.
//!
//! A node's word is its own: it says only what it has seen itself, never what it heard, or two nodes would keep a
//! source known for ever; and what others say of a source stands beside it. It says so in [letters](SourceLetter) of two
//! kinds: *news*, what has changed; and *slots*, each all that the node says of its part of the sources, for
//! nodes that begin.
//!
//! * Each word has an end, and holds no longer, however often it is repeated ([`Word`]).
//! * Of a node's letters, the later counts, so nothing that is repeated brings back what was taken back
//!   ([`SourceMap`]).
//! * [`Sayings`] is what a node itself says.
//!
//! Times are of the wall clock, since 1970: they go from host to host.

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
