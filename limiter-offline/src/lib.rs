//! Work on captures, without a daemon: [verdicts](replay) on their frames, [limits](suggest) that fit their traffic,
//! and the [names] in their connections.

#![forbid(unsafe_code)]

pub mod names;
pub mod replay;
pub mod suggest;
