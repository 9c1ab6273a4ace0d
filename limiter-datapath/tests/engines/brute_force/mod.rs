//! The bounds of each strategy, stated as plainly as possible.

mod admitted;
mod exact;

pub(crate) use self::{admitted::Admissions, exact::ExactWindow};
