//! Makes and verifies the programs of a policy.

use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use aya::EbpfLoader;
use limiter_common::{attachment_facts::slot, counters::MAX_INTERFACES, packet, policy::Features};
use limiter_policy::{
    config::{AttachMode, Scope},
    interface::{self, InterfaceName, is_named},
    policy::CompiledPolicy,
};

use super::{InterfaceProgram, PreparedPolicy};
use crate::kernel::{
    Attachment, ClockSource, Datapath, DatapathError, Instance, LogLevel, Manifest, Settings,
    SourceMaps, handshakes, instance::Constants, interface::Interface, log,
    map_directory::MapDirectory, maps::SharedMaps, pinned_maps::PinnedMaps as _, pod::InMap,
    program::Program, shared_map_sets::SharedMapSets,
};

impl Datapath {
    /// Makes and verifies the programs of a policy for these interfaces. Also makes maps for interfaces
    /// that do not exist yet, and for the names in `expected`, so that saved state has a number from the
    /// start. Changes nothing in force, except that it fills buckets of units that have lost their numbers.
    pub fn prepare(
        &self,
        manifest: Manifest,
        policy: CompiledPolicy,
        interfaces: &[Interface],
        expected: &[String],
    ) -> Result<PreparedPolicy, DatapathError> {
        let mut prepared = self.prepare_programs(manifest, policy, interfaces, expected, &[])?;
        let source_maps = prepared.shared_maps.source_maps();
        if let Some(maps) = source_maps.or_else(|| self.shared_maps.source_maps()) {
            let (settings, policy) = (prepared.manifest.settings, &prepared.policy);
            let buckets = prepared
                .shared_maps
                .of_host()
                .or_else(|| self.shared_maps.of_host());
            prepared.handshakes = handshakes::load(maps, buckets, settings, policy);
        }
        Ok(prepared)
    }

    /// Does the same, except for handshakes. Interfaces may join the programs of the attachments in `in_force`.
    fn prepare_programs(
        &self,
        manifest: Manifest,
        policy: CompiledPolicy,
        interfaces: &[Interface],
        expected: &[String],
        in_force: &[Attachment],
    ) -> Result<PreparedPolicy, DatapathError> {
        // This must precede the new units in the kernel: by the new units, these buckets would be misread.
        self.shared_maps
            .clear_taken_over(&self.policy.units, &policy.units)?;
        let manifest = Manifest {
            settings: self.sifting(&manifest, &policy),
            ..manifest
        };
        let replaces_shared_maps = !self.shared_maps.fits(manifest.settings);
        let began_with = if replaces_shared_maps {
            manifest.generation
        } else {
            self.shared_maps.generation()
        };
        let mut prepared = PreparedPolicy {
            replaces_shared_maps,
            shared_maps: SharedMapSets::new(began_with, manifest.settings),
            manifest: Manifest {
                maps_generation: began_with,
                ..manifest
            },
            policy: manifest.settings.keyed(policy),
            made: Vec::new(),
            handshakes: Ok(None),
        };
        let names = &prepared.manifest.interfaces;
        let interface_numbers = self.interface_numbers_for(names, interfaces, expected)?;
        for interface_number in interface_numbers.values() {
            prepared
                .shared_maps
                .provide(*interface_number, &self.shared_maps)?;
        }
        prepared.shared_maps.provide_common(&self.shared_maps)?;
        prepared.made = self.make(&prepared, interfaces, &interface_numbers, in_force)?;
        prepared.manifest.interface_numbers = interface_numbers;
        Ok(prepared)
    }

    /// Makes and verifies the programs of the policy in force for more interfaces. Changes nothing in
    /// force.
    pub fn prepare_more(&self, interfaces: &[Interface]) -> Result<PreparedPolicy, DatapathError> {
        let (manifest, policy) = (self.manifest.clone(), self.policy.clone());
        self.prepare_programs(manifest, policy, interfaces, &[], &self.attachments)
    }

    /// The numbers of these interfaces, of interfaces that are only named, and of the `expected`
    /// interfaces as far as there is room. Each keeps its present number, or gets a free one.
    fn interface_numbers_for(
        &self,
        names: &[InterfaceName],
        interfaces: &[Interface],
        expected: &[String],
    ) -> Result<BTreeMap<String, u32>, DatapathError> {
        let mut interface_numbers = BTreeMap::new();
        let there = interfaces.iter();
        let there = there.map(|found| (found.name.as_str(), Some(found)));
        let absent = interface::names(names).map(|name| (name, None));
        let wanted = expected.iter().map(|name| (name.as_str(), None));
        // Existing interfaces come first: their programs have numbers already.
        for (name, interface) in there.chain(absent).chain(wanted) {
            if interface_numbers.contains_key(name) {
                continue;
            }
            match self.interface_number_for(name, interface, names, &interface_numbers) {
                Some(number) => drop(interface_numbers.insert(name.to_owned(), number)),
                None if expected.iter().any(|expected| expected == name) => {}
                None => return Err(no_room(name)),
            }
        }
        Ok(interface_numbers)
    }

    /// The number of one interface; `None`: all numbers are `taken`, attached or retained.
    fn interface_number_for(
        &self,
        name: &str,
        interface: Option<&Interface>,
        names: &[InterfaceName],
        taken: &BTreeMap<String, u32>,
    ) -> Option<u32> {
        let is_taken =
            |interface_number: &u32| taken.values().any(|taken| taken == interface_number);
        let attached = |is_meant: &dyn Fn(&Attachment) -> bool| {
            let found = self.attachments.iter().find(|found| is_meant(found));
            found.map(|found| found.interface_number)
        };
        let is_unused = |interface_number: &u32| {
            !is_taken(interface_number)
                && !self.retained.contains(interface_number)
                && self
                    .attachments
                    .iter()
                    .all(|found| found.interface_number != *interface_number)
        };
        let reserved = self.manifest.interface_numbers.get(name).copied();
        // Prefer numbers without a reservation. A reservation may be for an interface that the policy no
        // longer names.
        let is_free = |interface_number: &u32| {
            is_unused(interface_number)
                && self.manifest.name_of_interface(*interface_number).is_none()
        };
        let is_given_up = |interface_number: &u32| {
            let reserved = self.manifest.name_of_interface(*interface_number);
            is_unused(interface_number) && !reserved.is_some_and(|name| is_named(names, name))
        };
        attached(&|found| interface.is_some_and(|interface| found.is_on(interface)))
            .or_else(|| {
                attached(&|found| found.interface == name)
                    .filter(|interface_number| !is_taken(interface_number))
            })
            .or_else(|| reserved.filter(is_unused))
            .or_else(|| (0..MAX_INTERFACES).find(is_free))
            .or_else(|| (0..MAX_INTERFACES).find(is_given_up))
    }

    /// Gives each interface a program: one in force, if it fits, or a new one, verified once for all interfaces that
    /// it fits.
    fn make(
        &self,
        prepared: &PreparedPolicy,
        interfaces: &[Interface],
        interface_numbers: &BTreeMap<String, u32>,
        in_force: &[Attachment],
    ) -> Result<Vec<InterfaceProgram>, DatapathError> {
        let (policy, settings) = (&prepared.policy, prepared.manifest.settings);
        let mut made = Vec::new();
        let mut loads: Vec<Vec<ProgramSite<'_>>> = Vec::new();
        for interface in interfaces {
            let interface_number = interface_numbers.get(&interface.name).copied();
            let site = ProgramSite {
                interface,
                number: interface_number.ok_or_else(|| no_room(&interface.name))?,
                link: interface.link_for(policy.features.answers())?,
            };
            if let Some(program) = site.join(in_force, settings)? {
                made.push(self.finish(&site, program));
                continue;
            }
            let mut fitting = loads.iter_mut();
            match fitting.find(|sites| site.fits_beside(sites, settings)) {
                Some(sites) => sites.push(site),
                None => loads.push(vec![site]),
            }
        }
        let instances = self.instances_for(&loads, prepared)?;
        for (sites, mut instance) in loads.iter().zip(instances) {
            let [first, others @ ..] = sites.as_slice() else {
                continue;
            };
            let forwarding = match settings.log {
                LogLevel::Off => None,
                LogLevel::Verdicts => Some(log::forward(&mut instance, &first.interface.name)?),
            };
            let program = instance.into_program(first.interface.index, first.number)?;
            for site in others {
                let program = program.share(site.interface.index, site.number)?;
                made.push(self.finish(site, program.ok_or_else(|| no_room(&site.interface.name))?));
            }
            made.push(InterfaceProgram {
                forwarding,
                ..self.finish(first, program)
            });
        }
        // Attached in the given order.
        made.sort_by_key(|made: &InterfaceProgram| {
            let mut names = interfaces.iter().map(|interface| &interface.name);
            names.position(|name| *name == made.interface.name)
        });
        Ok(made)
    }

    fn finish(&self, site: &ProgramSite<'_>, program: Program) -> InterfaceProgram {
        let mut attachments = self.attachments.iter();
        let attached = attachments.find(|found| found.is_on(site.interface));
        InterfaceProgram {
            interface: site.interface.clone(),
            pin_index: attached.map_or(site.interface.index, |found| found.index),
            interface_number: site.number,
            header: site.link,
            program,
            forwarding: None,
        }
    }

    /// Makes and verifies an instance for each set of sites, in parallel: the kernel takes some 50 ms for each, and
    /// holds no lock meanwhile.
    fn instances_for(
        &self,
        loads: &[Vec<ProgramSite<'_>>],
        prepared: &PreparedPolicy,
    ) -> Result<Vec<Instance>, DatapathError> {
        let PreparedPolicy {
            shared_maps,
            policy,
            ..
        } = prepared;
        let source_maps = shared_maps
            .source_maps()
            .or_else(|| self.shared_maps.source_maps());
        let source_maps = source_maps.ok_or(DatapathError::NoPolicy)?;
        let firsts = loads.iter().filter_map(|sites| sites.first());
        let maps = firsts.map(|site| {
            let maps = shared_maps.of(site.number);
            let maps = maps.or_else(|| self.shared_maps.of(site.number));
            Ok((site.link, maps.ok_or(DatapathError::NoPolicy)?))
        });
        let maps = maps.collect::<Result<Vec<_>, DatapathError>>()?;
        instances_over(&maps, source_maps, policy, prepared.manifest.settings)
    }
}

fn no_room(interface: &str) -> DatapathError {
    DatapathError::NoRoom {
        interface: interface.to_owned(),
    }
}

impl InterfaceProgram {
    pub(super) fn attach(self, mode: AttachMode) -> Result<Attachment, DatapathError> {
        let Self {
            interface,
            interface_number,
            header,
            program,
            forwarding,
            ..
        } = self;
        Ok(Attachment {
            forwarding,
            ..Attachment::new(program, &interface, interface_number, header, mode)?
        })
    }
}

/// Makes and verifies an instance for each kind of frames with these maps.
fn instances_over(
    loads: &[(packet::Link, &SharedMaps)],
    source_maps: &SourceMaps,
    policy: &CompiledPolicy,
    settings: Settings,
) -> Result<Vec<Instance>, DatapathError> {
    let constants = Constants::new(policy, settings, ClockSource::Kernel);
    let feature_sets = loads.iter().map(|(link, _)| constants.features(*link));
    let feature_sets: Vec<_> = feature_sets.collect();
    let next = AtomicUsize::new(0);
    let instances: Vec<_> = loads.iter().map(|_| OnceLock::new()).collect();
    let work: Vec<_> = loads.iter().zip(&feature_sets).zip(&instances).collect();
    let run = || {
        let mut loader = constants.loader();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((((_, maps), features), made)) = work.get(index) else {
                return;
            };
            // Each index is taken once.
            let _ = made.set(instance(
                &constants,
                &mut loader,
                features,
                maps,
                source_maps,
            ));
        }
    };
    thread::scope(|scope| {
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 1..cpus.min(loads.len()) {
            // If no thread can be started, this one makes all instances.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        if !loads.is_empty() {
            run();
        }
    });
    instances
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect()
}

fn instance<'c>(
    constants: &Constants<'_>,
    loader: &mut EbpfLoader<'c>,
    features: &'c InMap<Features>,
    maps: &SharedMaps,
    source_maps: &SourceMaps,
) -> Result<Instance, DatapathError> {
    let directory = MapDirectory::new()?;
    maps.pin(directory.path())?;
    source_maps.pin(directory.path())?;
    let (object, shared) = (constants.object(), Some(directory.path()));
    let mut instance = Instance::prepare(object, constants, loader, features, shared)?;
    instance.verify()?;
    Ok(instance)
}

/// An interface that needs a program.
struct ProgramSite<'i> {
    interface: &'i Interface,
    number: u32,
    /// The header at the start of the interface's frames.
    link: packet::Link,
}

impl ProgramSite<'_> {
    /// Whether the program for the interface must serve no other: with buckets of its own it has other maps, and
    /// verdicts are logged under its name.
    fn is_alone(settings: Settings) -> bool {
        settings.buckets.scope == Scope::Interface || settings.log == LogLevel::Verdicts
    }

    /// Whether a new program for these sites fits the interface, too.
    fn fits_beside(&self, sites: &[Self], settings: Settings) -> bool {
        let suits = |other: &Self| {
            self.link == other.link && slot(self.interface.index) != slot(other.interface.index)
        };
        !Self::is_alone(settings) && sites.iter().all(suits)
    }

    /// The program of one of these attachments, which have the policy in force, if it fits.
    fn join(
        &self,
        in_force: &[Attachment],
        settings: Settings,
    ) -> Result<Option<Program>, DatapathError> {
        if Self::is_alone(settings) {
            return Ok(None);
        }
        // Vanished interfaces have the programs of earlier policies.
        let fitting = in_force
            .iter()
            .filter(|found| found.header == self.link && found.exists());
        for program in fitting.filter_map(|found| found.program.as_ref()) {
            if let Some(program) = program.share(self.interface.index, self.number)? {
                return Ok(Some(program));
            }
        }
        Ok(None)
    }
}
