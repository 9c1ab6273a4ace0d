//! A configuration to be put in force: read, and checked against the machine, before anything changes.

use std::{
    mem,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use limiter_datapath::kernel::{
    Manifest,
    interface::{self, Interface, InterfaceError, InterfaceLookup},
    possible_cpus, wall_clock_now,
};
use limiter_host::fit::{self, Misfit};
use limiter_policy::{
    config::{self, Config, Diagnostics, PushedFile},
    interface::{InterfaceName, names as interface_names},
    lists::{Feeds, ListRecord},
    policy::{CompileError, CompiledPolicy, Names, TooManyNames, Units},
};
use thiserror::Error;

use super::options::Options;

/// A configuration without errors.
pub(super) struct Candidate {
    pub(super) config: Config,
    /// Where the addresses of its lists come from.
    pub(super) lists: Vec<ListRecord>,
    /// The contents of its lists' files.
    pub(super) feeds: Feeds,
    /// When reading it began.
    pub(super) begun_at: Timestamp,
    /// Every name interned so far.
    pub(super) names: Names,
    pub(super) policy: CompiledPolicy,
    /// The interfaces to limit.
    pub(super) interfaces: Vec<InterfaceName>,
    /// The existing interfaces; of interfaces selected by patterns alone, only the ones that the policy fits.
    pub(super) lookup: InterfaceLookup,
}

/// The configuration cannot be put in force; nothing has changed.
#[derive(Debug, Error)]
pub enum CandidateError {
    /// Errors in the configuration, one per line.
    #[error("{0}")]
    Config(#[from] Diagnostics),
    /// The policy does not fit the datapath.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The limits have too many names.
    #[error(transparent)]
    Names(#[from] TooManyNames),
    /// No interface is named.
    #[error(
        "no interface to attach to: name one with -i, or in the configuration under \
         `interfaces`"
    )]
    NoInterface,
    /// An interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The policy does not fit an interface.
    #[error(transparent)]
    Misfit(#[from] Misfit),
}

/// The inheritance of a policy from the one before it.
#[derive(Default)]
pub(super) struct Inheritance {
    /// The names of the limits in force.
    pub(super) in_force: Vec<String>,
    /// Every name interned so far.
    pub(super) names: Names,
    pub(super) units: Units,
}

impl Inheritance {
    pub(super) fn of(manifest: &Manifest) -> Self {
        let limits = manifest.policy.limits.iter();
        Self {
            in_force: limits.map(|limit| limit.name.clone()).collect(),
            names: manifest.names.clone(),
            units: manifest.units.clone(),
        }
    }
}

/// A configuration that was read and compiled.
pub(super) struct LoadedConfig {
    config: Config,
    lists: Vec<ListRecord>,
    feeds: Feeds,
    begun_at: Timestamp,
    names: Names,
    policy: CompiledPolicy,
}

impl LoadedConfig {
    /// Reads the configuration file and the feeds that it names. `inherited` returns the inheritance, which may be in
    /// a file that the configuration names. A refused feed keeps its `old` content, and a `pushed` file replaces the
    /// folder's. Takes seconds for very long files.
    pub(super) fn load(
        path: &Path,
        old: &Feeds,
        pushed: Option<PushedFile<'_>>,
        inherited: impl FnOnce(&Config) -> Inheritance,
    ) -> Result<Self, CandidateError> {
        let begun_at = wall_clock_now();
        let mut config = config::load_pushed(path, old, begun_at, pushed)?;
        let inherited = inherited(&config);
        let names;
        (config.policy, names) = config
            .policy
            .with_names(&inherited.names, &inherited.in_force)?;
        let policy = CompiledPolicy::with_units(&config.policy, &inherited.units, possible_cpus())?;
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

    /// Returns the interfaces to limit.
    pub(super) fn interface_names(
        &self,
        options: &Options,
    ) -> Result<Vec<InterfaceName>, CandidateError> {
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

    /// Looks for its interfaces, on which the programs with the ids `ours` may already be.
    pub(super) async fn check(
        self,
        interfaces: Vec<InterfaceName>,
        ours: &[u32],
    ) -> Result<Candidate, CandidateError> {
        let mut lookup = interface::find(&interfaces).await?;
        for interface in &lookup.named {
            interface.check_free(ours).map_err(InterfaceError::from)?;
        }
        let named: Vec<_> = lookup.named.iter().collect();
        for interface in &lookup.named {
            fit::check(&self.config.policy, interface, &named, &lookup.all)?;
        }
        // Interfaces that are already limited take precedence, so that they stay limited.
        let is_new =
            |found: &Interface| found.xdp_program.is_none_or(|(id, _)| !ours.contains(&id));
        lookup.selected.sort_by_key(is_new);
        let waiting = interface_names(&lookup.missing).count();
        let (selected, _) = fit::choose(&self.config.policy, &lookup, waiting);
        lookup.selected = selected.into_iter().cloned().collect();
        Ok(Candidate {
            config: self.config,
            lists: self.lists,
            feeds: self.feeds,
            begun_at: self.begun_at,
            names: self.names,
            policy: self.policy,
            interfaces,
            lookup,
        })
    }
}

impl Candidate {
    /// Fails unless all interfaces are there.
    pub(super) fn all_there(&self) -> Result<(), CandidateError> {
        self.lookup.all_there().map_err(Into::into)
    }
}

fn without_repeats(names: &[InterfaceName]) -> Vec<InterfaceName> {
    let mut unique = Vec::with_capacity(names.len());
    for name in names {
        if !unique.contains(name) {
            unique.push(name.clone());
        }
    }
    unique
}
