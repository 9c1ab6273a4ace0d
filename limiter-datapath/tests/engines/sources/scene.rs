//! A datapath without interfaces, in a network namespace of its own.

use std::net::IpAddr;

use anyhow::{Result, anyhow};
use limiter_common::standing::{Record, Standing};
use limiter_datapath::kernel::{
    Datapath, KnownSources, LogLevel, Manifest, Pins, Settings, possible_cpus,
};
use limiter_policy::{
    config::{self, Buckets, Offenders},
    policy::CompiledPolicy,
};
use testbed::{Namespace, PinDirectory};

/// A limit that asks for standing, whose reserve nobody here reaches.
const LIMIT: &str = "limits: {all: {id: total, cost: packets, count: 9, period: 1h, burst: 9000, reserve: \
                     {unknown: 1000}}}\n";

/// The datapath of a namespace.
pub(super) struct Scene {
    pub(super) namespace: Namespace,
    pub(super) datapath: Datapath,
}

impl Scene {
    /// Puts a policy in force with a section `standing` of these fields.
    pub(super) fn new(namespace: &Namespace, standing: &str) -> Result<Self> {
        Self::with_pins(namespace, standing, None)
    }

    /// Does the same; pins it in a directory, if any.
    pub(super) fn with_pins(
        namespace: &Namespace,
        standing: &str,
        directory: Option<&PinDirectory>,
    ) -> Result<Self> {
        let buckets = Buckets {
            capacity: 1024,
            ..Buckets::default()
        };
        let settings = Settings::new(buckets, Offenders::OFF, LogLevel::Off)?;
        let datapath = match directory {
            Some(directory) => {
                Datapath::with_pins(settings, Pins::take(&directory.path())?, Vec::new())?
            }
            None => Datapath::new(settings)?,
        };
        let mut scene = Self {
            namespace: namespace.clone(),
            datapath,
        };
        scene.replace(standing)?;
        Ok(scene)
    }

    /// Puts a policy with a section `standing` of these fields in force.
    pub(super) fn replace(&mut self, standing: &str) -> Result<()> {
        self.replace_by(&format!("{LIMIT}standing: {{{standing}}}\n"))
    }

    /// Puts any policy in force.
    pub(super) fn replace_by(&mut self, text: &str) -> Result<()> {
        let config = config::parse(text, "test").map_err(|errors| anyhow!("{errors}"))?;
        let policy = CompiledPolicy::new(&config.policy, possible_cpus())?;
        let present = self.datapath.manifest();
        let manifest = Manifest {
            generation: present.generation + 1,
            policy: config.policy,
            // It never appears: nothing is attached to it.
            interfaces: vec!["none".to_owned()],
            ..present.clone()
        };
        let datapath = &mut self.datapath;
        self.namespace.enter(|| {
            let prepared = datapath.prepare(manifest, policy, &[])?;
            let previous = datapath.apply(prepared)?;
            Ok(datapath.settle(previous)?)
        })
    }

    /// Returns whether handshakes are noted.
    pub(super) fn notes_handshakes(&self) -> Result<bool> {
        let noted = self.datapath.are_handshakes_noted();
        noted.map_err(|error| anyhow!("{error}"))
    }

    pub(super) fn known(&self) -> Result<KnownSources<'_>> {
        Ok(self.datapath.known_sources()?)
    }

    /// Returns the record and the standing of an address.
    pub(super) fn of(&self, address: &str) -> Result<(Record, Standing)> {
        let known = self.known()?;
        let record = known.record(known.source(address.parse::<IpAddr>()?));
        Ok((record, record.standing(&known.moment()?)))
    }

    /// Returns all known sources as addresses, in ascending order.
    pub(super) fn everybody(&self) -> Result<Vec<String>> {
        let known = self.known()?;
        let sources = known.all().map(|(source, _)| source.address());
        let mut addresses: Vec<_> = sources.map(IpAddr::from).collect();
        addresses.sort_unstable();
        Ok(addresses.iter().map(IpAddr::to_string).collect())
    }
}
