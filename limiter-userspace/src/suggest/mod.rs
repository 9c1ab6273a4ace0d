//! Suggests limits from packets and their times: what the sources of each service really send.
//!
//! `frames` tells the packets to the host from those that it sends, `observer` sorts them by
//! `service` into a `record` each, in bounded memory; `proposal` finds a rate (`rate`) for each kind
//! of `owners`, and counts (`drops`) by the decision core what it would drop. `verdicts` judges a
//! configuration by the same packets. No part reads a clock.

mod drops;
mod frames;
mod host;
mod observer;
mod owners;
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
    host::{Host, Way},
    observer::{Observed, Observer, Ways},
    peaks::Percentiles,
    proposal::{HeldOut, Margin, Proposal, Proposed, Suggestion},
    rate::Terms,
    service::Service,
    verdicts::{Fit, Judgement, Verdicts, observing},
    warnings::warnings,
};
