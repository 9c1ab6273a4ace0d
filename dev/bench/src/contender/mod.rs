//! The contenders, all behind one interface.

mod hashlimit;
mod limiter;
mod limiter_memory;
mod names;
mod nftables;
mod program;
mod shown;
mod standing;
mod terms;
mod windows;

use anyhow::Result;
use limiter_common::strategy::Strategy;
use limiter_policy::config::Store;
use testbed::Pair;

pub(crate) use self::{
    limiter::Limits,
    limiter_memory::MemoryReport,
    names::*,
    program::{LoadedProgram, Runnable},
    shown::shown,
    standing::Situation,
    terms::{Override, ROOM, Terms},
};
use crate::tool;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// One of the benchmark's own programs, by its name in the object.
    Program(&'static str),
    /// This limiter, with its buckets in one of its stores.
    Limiter(Store, Limits),
    Nftables,
    Hashlimit,
}

/// All contenders, in the order of the results.
pub(crate) const CONTENDERS: [Contender; 35] = [
    Contender::new(DROP, Kind::Program("drop_all")),
    Contender::new(PARSE, Kind::Program("parse_and_clock")),
    Contender::new(LINE, Kind::Program("parse_clock_and_line")),
    Contender::new(TABLE_1, Kind::Limiter(Store::Table, Limits::Address)),
    Contender::new(TABLE_2, Kind::Limiter(Store::Table, Limits::AddressTwice)),
    Contender::new(
        TABLE_RANGE,
        Kind::Limiter(Store::Table, Limits::AddressAndRange),
    ),
    Contender::new(TABLE_4, Kind::Limiter(Store::Table, Limits::Four)),
    Contender::new(
        TABLE_LISTS,
        Kind::Limiter(Store::Table, Limits::ManyOverrides),
    ),
    Contender::new(
        TABLE_LISTED,
        Kind::Limiter(Store::Table, Limits::ManyListed),
    ),
    Contender::new(TABLE_BANS, Kind::Limiter(Store::Table, Limits::ManyBans)),
    Contender::new(TABLE_SIEVE, Kind::Limiter(Store::Table, Limits::Sieve)),
    Contender::new(
        TABLE_FLEET,
        Kind::Limiter(Store::Table, Limits::SharedLimit),
    ),
    Contender::new(
        TABLE_TOTAL,
        Kind::Limiter(Store::Table, Limits::AddressAndTotal),
    ),
    Contender::new(TABLE_STANDING, of_standing(Situation::Calm)),
    Contender::new(TABLE_KNOWN, of_standing(Situation::ShortOfRoom)),
    Contender::new(REFUSED_UNKNOWN, of_standing(Situation::Spent)),
    Contender::new(HASH_1, Kind::Limiter(Store::Hash, Limits::Address)),
    Contender::new(HASH_2, Kind::Limiter(Store::Hash, Limits::AddressTwice)),
    Contender::new(
        HASH_RANGE,
        Kind::Limiter(Store::Hash, Limits::AddressAndRange),
    ),
    Contender::new(HASH_4, Kind::Limiter(Store::Hash, Limits::Four)),
    Contender::new(TABLE_FIXED, of_window(Store::Table, Strategy::FixedWindow)),
    Contender::new(
        TABLE_SLIDING,
        of_window(Store::Table, Strategy::SlidingWindowCounter),
    ),
    Contender::new(
        TABLE_MOVING_10,
        Kind::Limiter(Store::Table, Limits::MovingWindow(10)),
    ),
    Contender::new(
        TABLE_MOVING_128,
        Kind::Limiter(Store::Table, Limits::MovingWindow(128)),
    ),
    Contender::new(HASH_FIXED, of_window(Store::Hash, Strategy::FixedWindow)),
    Contender::new(
        HASH_SLIDING,
        of_window(Store::Hash, Strategy::SlidingWindowCounter),
    ),
    Contender::new(
        HASH_MOVING_10,
        Kind::Limiter(Store::Hash, Limits::MovingWindow(10)),
    ),
    Contender::new(
        HASH_MOVING_128,
        Kind::Limiter(Store::Hash, Limits::MovingWindow(128)),
    ),
    Contender::new(REFUSED_GCRA, refusing(Strategy::Gcra)),
    Contender::new(REFUSED_FIXED, refusing(Strategy::FixedWindow)),
    Contender::new(REFUSED_SLIDING, refusing(Strategy::SlidingWindowCounter)),
    Contender::new(REFUSED_MOVING, refusing(Strategy::MovingWindow)),
    Contender::new(WINDOW, Kind::Program(program::FIXED_WINDOW)),
    Contender::new(NFTABLES, Kind::Nftables),
    Contender::new(HASHLIMIT, Kind::Hashlimit),
];

const fn of_window(store: Store, strategy: Strategy) -> Kind {
    Kind::Limiter(store, Limits::Window(strategy))
}

const fn of_standing(situation: Situation) -> Kind {
    Kind::Limiter(Store::Table, Limits::Standing(situation))
}

/// Returns a contender in the default store only, because a refused packet hardly writes to the
/// store.
const fn refusing(strategy: Strategy) -> Kind {
    Kind::Limiter(Store::Table, Limits::Refused(strategy))
}

impl Contender {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind }
    }

    /// Returns whether it is a program that can run on its own.
    pub(crate) const fn is_program(&self) -> bool {
        matches!(self.kind, Kind::Program(_) | Kind::Limiter(..))
    }

    /// Returns whether it measures a strategy; nanoseconds per packet are enough for that.
    pub(crate) const fn is_of_strategy(&self) -> bool {
        matches!(
            self.kind,
            Kind::Limiter(
                _,
                Limits::Window(_) | Limits::MovingWindow(_) | Limits::Refused(_)
            )
        )
    }

    /// Returns whether it measures standing, which costs the same in both families.
    pub(crate) const fn is_of_standing(&self) -> bool {
        matches!(
            self.kind,
            Kind::Limiter(_, Limits::AddressAndTotal | Limits::Standing(_))
        )
    }

    /// Returns whether every source must be known, so that the table needs room for all.
    pub(crate) const fn knows_all(&self) -> bool {
        matches!(
            self.kind,
            Kind::Limiter(_, Limits::Standing(Situation::ShortOfRoom))
        )
    }

    pub(crate) const fn refuses(&self) -> bool {
        matches!(self.kind, Kind::Limiter(_, Limits::Refused(_)))
    }

    /// Returns whether it can have another limit for some sources.
    pub(crate) const fn has_overrides(&self) -> bool {
        !matches!(self.kind, Kind::Program(_))
    }

    /// Returns how many sources it has room for; `None` means all.
    pub(crate) const fn room(&self) -> Option<u32> {
        match self.kind {
            Kind::Program(_) | Kind::Limiter(..) => Some(ROOM),
            Kind::Nftables | Kind::Hashlimit => None,
        }
    }

    /// Loads it without attaching it; returns `None` if it is not a program.
    pub(crate) fn load(&self, terms: &Terms) -> Result<Option<LoadedProgram>> {
        match self.kind {
            Kind::Program(name) => LoadedProgram::program(name, terms).map(Some),
            Kind::Limiter(store, limits) => LoadedProgram::limiter(store, limits, terms).map(Some),
            Kind::Nftables | Kind::Hashlimit => Ok(None),
        }
    }

    /// Starts it on the server's end of a pair, for as long as the returned value and the pair
    /// exist.
    pub(crate) fn start(&self, pair: &Pair, terms: &Terms) -> Result<Option<LoadedProgram>> {
        match self.kind {
            Kind::Nftables => nftables::start(pair, terms)?,
            Kind::Hashlimit => hashlimit::start(pair, terms)?,
            Kind::Program(_) | Kind::Limiter(..) => {}
        }
        self.load(terms)?
            .map(|program| program.attach(pair))
            .transpose()
    }

    /// Returns why it cannot take part on this machine, if so.
    pub(crate) fn missing(&self) -> Option<String> {
        match self.kind {
            Kind::Nftables => tool::missing(&["nft", "ethtool"]),
            Kind::Hashlimit => tool::missing(&["iptables", "ip6tables", "ethtool"]),
            Kind::Program(_) | Kind::Limiter(..) => None,
        }
    }
}
