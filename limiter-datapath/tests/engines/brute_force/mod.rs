//! What each strategy lets pass, said as plainly as can be.

mod admitted;
mod exact;

pub(crate) use self::{admitted::Admitted, exact::Exact};
