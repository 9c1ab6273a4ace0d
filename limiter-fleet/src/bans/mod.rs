//! Bans of the whole fleet: a map of the last update about each, with its node and time.
//!
//! Every node holds the map, and sends each change by its operators, programs and limits as an update
//! ([`BanUpdate`]). The later of two updates about one ban wins; at equal times, the update of the greater
//! node name ([`Stamp`]). So all nodes that have received the same updates, in any order and any number of
//! times, have the same map ([`BanMap`]). A lifted ban stays in it until the ban would have ended, so that
//! a delayed update cannot revive it.
//!
//! Times are wall-clock times in milliseconds since 1970, since they travel between hosts. A node stamps
//! its own update later than any update it knows about the ban, even if its clock is behind. Updates from the
//! future by more than [`MOST_AHEAD_MS`] are refused.

mod authenticator;
mod heartbeat;
mod map;
mod tally;
mod update;

pub use self::{
    authenticator::{BanAuthenticator, MOST_BAN_UPDATES},
    heartbeat::{Heartbeat, StreamPlace},
    map::{BanMap, Entry, MOST_HELD, Merged},
    update::{BanId, BanState, BanUpdate, LONGEST_MS, MOST_AHEAD_MS, Stamp, WrongUpdate},
};
