//! Bans of the whole fleet: a map of the last note about each, with its node and time.
//!
//! Every node holds the map, and sends each change by its operators, programs and limits as a note
//! ([`BanNote`]). The later of two notes about one ban wins; at equal times, the note of the greater node
//! name ([`Stamp`]). So all nodes that have received the same notes, in any order and any number of times,
//! have the same map ([`BanMap`]). A lifted ban stays in it until the ban would have ended, so that a
//! delayed note cannot revive it.
//!
//! Times are wall-clock times in milliseconds since 1970, since they travel between hosts. A node stamps
//! its own note later than any note it knows about the ban, even if its clock is behind. Notes from the
//! future by more than [`MOST_AHEAD_MS`] are refused.

mod beat;
mod map;
mod note;
mod seal;
mod tally;

pub use self::{
    beat::{Beat, StreamPlace},
    map::{BanMap, Entry, MOST_HELD, Merged},
    note::{BanId, BanNote, LONGEST_MS, MOST_AHEAD_MS, Said, Stamp, WrongNote},
    seal::{BanSeal, MOST_BAN_NOTES},
};
