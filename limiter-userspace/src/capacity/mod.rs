//! What the server behind us can bear: a limit's rate that the daemon finds by itself.
//!
//! The host says when it has too much: it counts the packets that it lost because nobody took them
//! in time ([`Distress`]). The [`Law`] moves the rate by that.

mod distress;
mod law;

pub use self::{
    distress::{Distress, ReadDistressError},
    law::{Bounds, EVERY, Interval, Law},
};
