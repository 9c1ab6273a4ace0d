//! Suggests limits from captured packets: the rates that the sources of each service really need.
//!
//! `frames` sorts packets by direction, and `observer` sorts incoming ones by `service` into a `record` each,
//! in bounded memory. `proposal` finds a rate (`rate`) for each kind of `keys`, and counts the drops it would
//! cause (`drops`) by the decision core's rule. `verdicts` judges a configuration by the same packets. No part
//! reads a clock.

mod drops;
mod frames;
mod host;
mod keys;
mod observer;
mod peaks;
mod ports;
mod proposal;
mod rate;
mod record;
mod service;
mod verdicts;
mod warnings;

pub use self::{
    drops::Drops,
    frames::{Frames, Sink},
    host::{Host, PacketDirection},
    observer::{Observation, Observer, PacketCounts},
    peaks::Percentiles,
    proposal::{HoldoutTest, Margin, Proposal, ServiceProposal, Suggestion},
    rate::Terms,
    service::Service,
    verdicts::{Fit, LimitFit, Verdicts, observing},
    warnings::warnings,
};
