//! The known sources, as operators see and change them. The kernel's table is the only source of truth.

mod change;
mod forget;
mod list;
mod sources;

pub use self::change::change_known_pinned;
pub(super) use self::{
    change::change,
    forget::forget,
    list::{list, of_address},
};
