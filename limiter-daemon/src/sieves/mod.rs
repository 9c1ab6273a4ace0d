//! Sieves while the daemon runs: keeps their pressure up to date, and answers requests about them.

mod pressure;
mod status;

pub(super) use self::{
    pressure::{Pressures, start},
    status::{brief, explain, list},
};
