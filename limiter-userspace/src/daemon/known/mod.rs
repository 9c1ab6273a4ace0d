//! The known sources, as operators see and change them. The kernel's table is the one truth.

mod change;
mod handshakes;
mod list;
mod sources;

pub use self::change::change_known_pinned;
pub(super) use self::{
    change::change,
    handshakes::warn_of_unseen,
    list::{list, of_address},
};
