//! Standing: knowledge of sources, and the reserves of limits for sources of a higher standing.
//!
//! A source is an IPv4 address or an IPv6 prefix ([`Settings::ipv6_prefix`]). A limit may
//! [reserve](Reserves) a part of its bucket; sources of a lower standing may not touch it.
//!
//! Without a shortage most sources are not looked up: looking up all would cost 60 ns more with one
//! source, and 280 ns with 16 million. Making that choice in the entry program would save a tail
//! call, but take 175 007 verified instructions on Linux 6.1.
//!
//! A known source in a /24 gives its neighbours no standing (docs/architecture.md says why).

mod context;
mod event;
pub mod filter;
pub(crate) mod first_tries;
pub(crate) mod known;
mod order;
mod record;
mod reserves;
mod sampling;
mod settings;
pub(crate) mod shortage;
mod source;
mod tick;

pub use self::{
    context::StandingContext,
    event::Event,
    filter::{FilterPlace, FilterWord},
    first_tries::{FIRST_TRIES, FirstTries, age_of_first_try, line_of as first_try_line},
    known::find,
    order::EventOrder,
    record::{Kind, Record},
    reserves::Reserves,
    sampling::VisitCount,
    settings::Settings,
    shortage::{Shortage, ShortageWord},
    source::{HashedSource, SourceId},
    tick::Tick,
};
use crate::numbered::numbered;

numbered! {
    /// The standing of a source, from the highest to the lowest.
    #[cfg_attr(
        feature = "serde",
        derive(serde::Serialize, serde::Deserialize),
        serde(rename_all = "kebab-case")
    )]
    pub enum Standing {
        /// Before the shortage began, it completed a TCP handshake or an operator trusted it:
        /// packets to its address reach it, so the address is not forged.
        Proven,
        /// It came on several separate occasions while there was no shortage.
        Familiar,
        /// It was proven or became familiar during the shortage, or shortly before.
        Fresh,
        /// It was refused as unknown and came again after a delay that forgers do not wait for.
        Retried,
        /// It has no standing.
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

    /// The name in configuration files and output.
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
