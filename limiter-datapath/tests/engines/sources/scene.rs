//! A datapath without interfaces, in its own network namespace.

use std::net::IpAddr;

use anyhow::{Result, anyhow, bail, ensure};
use limiter_common::standing::{Record, Standing};
use limiter_datapath::{
    kernel::{
        Adoption, Datapath, KnownSources, LogLevel, Manifest, Pins, PinsError, PreparedPolicy,
        PreviousPolicy, Settings, possible_cpus,
    },
    state::SavedSources,
};
use limiter_policy::{
    config::{self, Buckets, Offenders},
    policy::CompiledPolicy,
};
use testbed::{Namespace, PinDirectory};

use super::peers::wait_for;

/// A limit on standing; no test here reaches its reserve.
pub(super) const LIMIT: &str = "limits: {all: {id: total, cost: packets, count: 9, period: 1h, burst: 9000, reserve: \
                     {unknown: 1000}}}\nown-connections: limit\n";

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
        let mut scene = Self::empty(namespace, directory)?;
        scene.replace(standing)?;
        Ok(scene)
    }

    /// Does the same as [`Self::new`], and restores sources that were saved `passed_ns` ago;
    /// returns how many of them are still known.
    pub(super) fn resumed(
        namespace: &Namespace,
        standing: &str,
        saved: &SavedSources,
        passed_ns: u64,
    ) -> Result<(Self, usize)> {
        let mut scene = Self::empty(namespace, None)?;
        let mut known = 0;
        let previous = scene.apply_by(&text(standing), |prepared| {
            known = prepared.restore_saved_sources(saved, passed_ns)?;
            Ok(())
        })?;
        scene.datapath.settle(previous)?;
        Ok((scene, known))
    }

    /// Takes over the pins, as the next process does, and the previous policy if the change is not
    /// settled.
    pub(super) fn adopt(
        namespace: &Namespace,
        directory: &PinDirectory,
    ) -> Result<(Self, Option<PreviousPolicy>)> {
        // A command that another test starts at this moment has the lock until it runs.
        let pins = wait_for(|| match Pins::take(&directory.path()) {
            Err(PinsError::InUse(_)) => Ok(None),
            pins => Ok(Some(pins?)),
        })?;
        let adopted = namespace.enter(|| Ok(Datapath::adopt(pins)?))?;
        let Adoption::Datapath(datapath, previous) = adopted else {
            bail!("no policy is pinned");
        };
        let scene = Self {
            namespace: namespace.clone(),
            datapath: *datapath,
        };
        Ok((scene, previous.map(|previous| *previous)))
    }

    /// Begins without a policy.
    fn empty(namespace: &Namespace, directory: Option<&PinDirectory>) -> Result<Self> {
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
        Ok(Self {
            namespace: namespace.clone(),
            datapath,
        })
    }

    /// Puts a policy with a section `standing` of these fields in force.
    pub(super) fn replace(&mut self, standing: &str) -> Result<()> {
        self.replace_by(&text(standing))
    }

    /// Puts any policy in force.
    pub(super) fn replace_by(&mut self, text: &str) -> Result<()> {
        let previous = self.apply_by(text, |_| Ok(()))?;
        Ok(self.datapath.settle(previous)?)
    }

    /// Does the same as [`Self::replace`], but does not settle it.
    pub(super) fn apply(&mut self, standing: &str) -> Result<PreviousPolicy> {
        self.apply_by(&text(standing), |_| Ok(()))
    }

    fn apply_by(
        &mut self,
        text: &str,
        fill: impl FnOnce(&PreparedPolicy) -> Result<()> + Send,
    ) -> Result<PreviousPolicy> {
        let config = config::parse(text, "test").map_err(|errors| anyhow!("{errors}"))?;
        let policy = CompiledPolicy::new(&config.policy, possible_cpus())?;
        let present = self.datapath.manifest();
        let manifest = Manifest {
            generation: present.generation + 1,
            policy: config.policy,
            // It never appears: nothing is attached to it.
            interfaces: vec!["none".parse()?],
            ..present.clone()
        };
        let datapath = &mut self.datapath;
        self.namespace.enter(|| {
            let prepared = datapath.prepare(manifest, policy, &[], &[])?;
            fill(&prepared)?;
            Ok(datapath.apply(prepared)?)
        })
    }

    /// Whether handshakes are recorded.
    pub(super) fn records_handshakes(&self) -> Result<bool> {
        let recorded = self.datapath.handshake_status();
        recorded.map_err(|error| anyhow!("{error}"))
    }

    pub(super) fn known(&self) -> Result<KnownSources<'_>> {
        Ok(self.datapath.known_sources()?)
    }

    /// The record and the standing of an address. Fails if the filter denies a standing.
    pub(super) fn of(&self, address: &str) -> Result<(Record, Standing)> {
        let known = self.known()?;
        let source = known.source(address.parse::<IpAddr>()?);
        let record = known.record(source);
        let standing = record.standing(&known.standing_context()?);
        ensure!(
            standing == Standing::Unknown || known.may_have_standing(source),
            "the filter lacks {address}"
        );
        Ok((record, standing))
    }

    /// All known sources as addresses, in ascending order.
    pub(super) fn everybody(&self) -> Result<Vec<String>> {
        let known = self.known()?;
        let sources = known.all().map(|(source, _)| source.address());
        let mut addresses: Vec<_> = sources.map(IpAddr::from).collect();
        addresses.sort_unstable();
        Ok(addresses.iter().map(IpAddr::to_string).collect())
    }
}

/// The policy with a section `standing` of these fields.
pub(super) fn text(standing: &str) -> String {
    format!("{LIMIT}standing: {{{standing}}}\n")
}
