//! A configuration that is to be put in force: read, and checked against the machine, before
//! anything is changed.

use std::{
    mem,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use limiter_common::limit::Cost;
use limiter_datapath::kernel::{
    Manifest,
    interface::{self, Interface, InterfaceError, Looked},
    possible_cpus, wall_clock_now,
};
use limiter_policy::{
    config::{self, Config, Diagnostics},
    lists::{Feeds, ListRecord},
    policy::{CompileError, CompiledPolicy, Names, Policy, TooManyNames, Units},
};
use thiserror::Error;

use super::options::Options;

/// A configuration that holds no error.
pub(super) struct Candidate {
    pub(super) config: Config,
    /// Where the addresses of its lists come from.
    pub(super) lists: Vec<ListRecord>,
    /// What the files of its lists have.
    pub(super) feeds: Feeds,
    /// When it was begun to read it.
    pub(super) begun_at: Timestamp,
    /// Every name that was interned so far.
    pub(super) names: Names,
    pub(super) policy: CompiledPolicy,
    /// The interfaces that are to be limited, by name.
    pub(super) interfaces: Vec<String>,
    /// Which of them are there.
    pub(super) looked: Looked,
}

/// The configuration cannot be put in force; nothing has changed.
#[derive(Debug, Error)]
pub enum CandidateError {
    /// Errors in the configuration, one a line.
    #[error("{0}")]
    Config(#[from] Diagnostics),
    /// The policy does not fit the datapath.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The limits have too many names.
    #[error(transparent)]
    Names(#[from] TooManyNames),
    /// Nobody said where.
    #[error(
        "no interface to attach to: name one with -i, or in the configuration under \
         `interfaces`"
    )]
    NoInterface,
    /// An interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A byte limit that would never let a full-sized frame of the interface pass.
    #[error(
        "limit {limit} has a {field} of {burst} bytes, but {interface} carries frames of {frame} \
         bytes (MTU {mtu}), which could then never pass: raise the {field} to at least {frame}"
    )]
    BurstBelowFrame {
        /// The limit.
        limit: String,
        /// `burst`, or `count` where that of a window is all that it admits at once.
        field: &'static str,
        /// What it is in bytes, or an override's.
        burst: u64,
        /// The interface.
        interface: String,
        /// Its largest frame, in bytes.
        frame: u64,
        /// Its MTU, in bytes.
        mtu: u32,
    },
}

/// What a policy goes on with of the one before it.
#[derive(Default)]
pub(super) struct Known {
    /// The names of the limits that are in force.
    pub(super) in_force: Vec<String>,
    /// Every name that was interned so far.
    pub(super) names: Names,
    pub(super) units: Units,
}

impl Known {
    pub(super) fn of(manifest: &Manifest) -> Self {
        let limits = manifest.policy.limits.iter();
        Self {
            in_force: limits.map(|limit| limit.name.clone()).collect(),
            names: manifest.names.clone(),
            units: manifest.units.clone(),
        }
    }
}

/// A configuration that was read, and compiled.
pub(super) struct Read {
    config: Config,
    lists: Vec<ListRecord>,
    feeds: Feeds,
    begun_at: Timestamp,
    names: Names,
    policy: CompiledPolicy,
}

impl Read {
    /// Reads the configuration file, which may tell where to look for what is `known`, and the
    /// feeds that it names; of those that are refused, what is `old` stays. Takes seconds, where
    /// they are very long.
    pub(super) fn load(
        path: &Path,
        old: &Feeds,
        known: impl FnOnce(&Config) -> Known,
    ) -> Result<Self, CandidateError> {
        let begun_at = wall_clock_now();
        let mut config = config::load_again(path, old)?;
        let known = known(&config);
        let names;
        (config.policy, names) = config.policy.with_names(&known.names, &known.in_force)?;
        let policy = CompiledPolicy::with_units(&config.policy, &known.units, possible_cpus())?;
        let feeds = mem::take(&mut config.feeds);
        Ok(Self {
            lists: ListRecord::all(&config.lists, &feeds),
            feeds,
            begun_at,
            config,
            names,
            policy,
        })
    }

    /// The files it was read from.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.config.files
    }

    /// The interfaces that are to be limited, by name.
    pub(super) fn interface_names(&self, options: &Options) -> Result<Vec<String>, CandidateError> {
        let names = if options.interfaces.is_empty() {
            self.config.interfaces.clone()
        } else {
            without_repeats(&options.interfaces)
        };
        if names.is_empty() {
            return Err(CandidateError::NoInterface);
        }
        Ok(names)
    }

    /// Looks for its interfaces. `ours` are the ids of programs that may be there already.
    pub(super) async fn check(
        self,
        names: Vec<String>,
        ours: &[u32],
    ) -> Result<Candidate, CandidateError> {
        let looked = interface::look(&names, ours).await?;
        for interface in &looked.found {
            check_bursts(&self.config.policy, interface)?;
        }
        Ok(Candidate {
            config: self.config,
            lists: self.lists,
            feeds: self.feeds,
            begun_at: self.begun_at,
            names: self.names,
            policy: self.policy,
            interfaces: names,
            looked,
        })
    }
}

impl Candidate {
    /// Fails unless all interfaces are there.
    pub(super) fn all_there(&self) -> Result<(), CandidateError> {
        self.looked.all_there().map_err(Into::into)
    }
}

fn without_repeats(names: &[String]) -> Vec<String> {
    let mut unique = Vec::with_capacity(names.len());
    for name in names {
        if !unique.contains(name) {
            unique.push(name.clone());
        }
    }
    unique
}

/// A frame larger than a byte limit's burst never passes: refuse what would cut off every
/// full-sized frame of the interface.
fn check_bursts(policy: &Policy, interface: &Interface) -> Result<(), CandidateError> {
    const ETHERNET_HEADER: u64 = 14;
    let frame = u64::from(interface.mtu) + ETHERNET_HEADER;
    for limit in policy
        .limits
        .iter()
        .filter(|limit| limit.cost == Cost::Bytes)
    {
        let rates = limit.overrides.iter().map(|other| other.rate);
        for rate in limit.default.into_iter().chain(rates) {
            if rate.burst < frame {
                return Err(CandidateError::BurstBelowFrame {
                    limit: limit.name.clone(),
                    field: if limit.strategy.has_burst() {
                        "burst"
                    } else {
                        "count"
                    },
                    burst: rate.burst,
                    interface: interface.name.clone(),
                    frame,
                    mtu: interface.mtu,
                });
            }
        }
    }
    Ok(())
}
