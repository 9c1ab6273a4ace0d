//! Standing: what is known of a source, and what limits reserve for sources of a higher standing.
//!
//! A source is an IPv4 address or an IPv6 prefix ([`Settings::ipv6_prefix`]). A limit may
//! [reserve](Reserves) a part of its bucket, which sources of a lower standing may not touch.
//!
//! Without a shortage most sources are not looked up: to look up all would cost 60 ns more with one
//! source, and 280 with 16 million. In the entry that choice would save a tail call, but take
//! 175 007 verified instructions on Linux 6.1.
//!
//! A source whose /24 has a known one gains nothing by that (docs/architecture.md says why).

mod event;
pub(crate) mod first_tries;
pub(crate) mod known;
mod moment;
mod order;
mod record;
mod reserves;
mod sampling;
mod settings;
pub(crate) mod shortage;
mod source;
mod tick;

pub use self::{
    event::Event,
    first_tries::{FIRST_TRIES, FirstTries, age_of_first_try, line_of as first_try_line},
    known::look,
    moment::Moment,
    order::KnowOrder,
    record::{Kind, Record},
    reserves::Reserves,
    sampling::VisitCount,
    settings::Settings,
    shortage::{Shortage, ShortageWord},
    source::SourceId,
    tick::Tick,
};
use crate::numbered::numbered;

numbered! {
    /// What is known of a source, from the highest standing to the lowest.
    #[cfg_attr(
        feature = "serde",
        derive(serde::Serialize, serde::Deserialize),
        serde(rename_all = "kebab-case")
    )]
    pub enum Standing {
        /// Before the shortage began, it completed a TCP handshake or somebody vouched for it, so
        /// it receives what is sent to it.
        Proven,
        /// It came on several separate occasions while there was no shortage.
        Familiar,
        /// It was proven or became familiar during the shortage, or shortly before it.
        Fresh,
        /// It was refused as unknown and came again after a time that no forger waits for.
        Retried,
        /// Nothing is known of it.
        Unknown,
    } else Unknown
}

impl Standing {
    /// The number of standings.
    pub const COUNT: usize = 5;

    /// Every standing, from the highest to the lowest.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Proven,
        Self::Familiar,
        Self::Fresh,
        Self::Retried,
        Self::Unknown,
    ];

    /// Returns the name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Familiar => "familiar",
            Self::Fresh => "fresh",
            Self::Retried => "retried",
            Self::Unknown => "unknown",
        }
    }
}
