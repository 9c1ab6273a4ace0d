//! Sieves while the daemon runs: their pressure is kept up to date, and they are told of.

mod pressure;
mod tell;

pub(super) use self::{
    pressure::{PressureThread, Pressures},
    tell::{brief, explain, list},
};
