//! Bans that all nodes have in common: a map of the last that was said of each, by whom and when.
//!
//! Every node has the map, and tells the others what its operators, programs and limits change
//! ([`BanNote`]). The later of two notes about one ban counts; among two of one time, that of the
//! node whose name is greater ([`Stamp`]): so all nodes that have heard the same notes, in any order
//! and however often, have the same map ([`BanMap`]). A lifted ban stays in it as lifted until the ban
//! would have ended, so that nothing kept back brings it to life again.
//!
//! Times are of the wall clock, in milliseconds since 1970: they go from host to host. A node's own
//! note is always later than what it knows of the ban, whatever its clock says; and no note is taken
//! that is from the future, by more than [`MOST_AHEAD_MS`].

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
