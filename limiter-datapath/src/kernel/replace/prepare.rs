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
use limiter_common::{counters::MAX_INTERFACES, policy::Features};
use limiter_policy::{
    config::AttachMode,
    interface::{self, InterfaceName, is_named},
    policy::CompiledPolicy,
};

use super::{InterfaceProgram, PreparedPolicy};
use crate::kernel::{
    Attachment, ClockSource, Datapath, DatapathError, Instance, LogLevel, Manifest, Settings,
    SourceMaps, handshakes,
    instance::{Constants, Device},
    interface::Interface,
    log,
    map_directory::MapDirectory,
    maps::SharedMaps,
    pinned_maps::PinnedMaps as _,
    pod::InMap,
    shared_map_sets::SharedMapSets,
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
        let mut prepared = self.prepare_programs(manifest, policy, interfaces, expected)?;
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

    /// Does the same, except for handshakes.
    fn prepare_programs(
        &self,
        manifest: Manifest,
        policy: CompiledPolicy,
        interfaces: &[Interface],
        expected: &[String],
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
        prepared.made = self.make(&prepared, interfaces, &interface_numbers)?;
        prepared.manifest.interface_numbers = interface_numbers;
        Ok(prepared)
    }

    /// Makes and verifies the programs of the policy in force for more interfaces. Changes nothing in
    /// force.
    pub fn prepare_more(&self, interfaces: &[Interface]) -> Result<PreparedPolicy, DatapathError> {
        self.prepare_programs(self.manifest.clone(), self.policy.clone(), interfaces, &[])
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

    /// Makes and verifies a program for each interface, in parallel: the kernel takes some 50 ms for each,
    /// and holds no lock meanwhile.
    fn make(
        &self,
        prepared: &PreparedPolicy,
        interfaces: &[Interface],
        interface_numbers: &BTreeMap<String, u32>,
    ) -> Result<Vec<InterfaceProgram>, DatapathError> {
        let PreparedPolicy {
            shared_maps,
            policy,
            ..
        } = prepared;
        let settings = prepared.manifest.settings;
        let source_maps = shared_maps
            .source_maps()
            .or_else(|| self.shared_maps.source_maps());
        let sites = interfaces.iter().map(|interface| {
            let interface_number = interface_numbers.get(&interface.name).copied();
            let number = interface_number.ok_or_else(|| no_room(&interface.name))?;
            let maps = shared_maps
                .of(number)
                .or_else(|| self.shared_maps.of(number));
            Ok(ProgramSite {
                interface,
                device: Device {
                    number,
                    link: interface.link_for(policy.features.answers())?,
                },
                maps: maps.ok_or(DatapathError::NoPolicy)?,
                source_maps: source_maps.ok_or(DatapathError::NoPolicy)?,
            })
        });
        let sites = sites.collect::<Result<Vec<_>, DatapathError>>()?;
        let instances = instances_at(&sites, policy, settings)?;
        let made = sites.into_iter().zip(instances);
        made.map(|(site, instance)| self.finish(&site, instance, settings.log))
            .collect()
    }

    fn finish(
        &self,
        site: &ProgramSite<'_>,
        mut instance: Instance,
        log: LogLevel,
    ) -> Result<InterfaceProgram, DatapathError> {
        let interface = site.interface;
        let forwarding = match log {
            LogLevel::Off => None,
            LogLevel::Verdicts => Some(log::forward(&mut instance, &interface.name)?),
        };
        // Pins are named by the interface's index at the time of attaching.
        let mut attachments = self.attachments.iter();
        let attached = attachments.find(|found| found.is_on(interface));
        Ok(InterfaceProgram {
            interface: Interface {
                index: attached.map_or(interface.index, |found| found.index),
                ..interface.clone()
            },
            device: site.device,
            program: instance.into_program()?,
            forwarding,
        })
    }
}

fn no_room(interface: &str) -> DatapathError {
    DatapathError::NoRoom {
        interface: interface.to_owned(),
    }
}

impl InterfaceProgram {
    pub(super) fn attach(self, mode: AttachMode) -> Result<Attachment, DatapathError> {
        Ok(Attachment {
            forwarding: self.forwarding,
            ..Attachment::new(self.program, &self.interface, self.device, mode)?
        })
    }
}

/// Makes and verifies an instance at each site.
fn instances_at(
    sites: &[ProgramSite<'_>],
    policy: &CompiledPolicy,
    settings: Settings,
) -> Result<Vec<Instance>, DatapathError> {
    let constants = Constants::new(policy, settings, ClockSource::Kernel);
    let feature_sets = sites.iter().map(|site| constants.features(site.device));
    let feature_sets: Vec<_> = feature_sets.collect();
    let next = AtomicUsize::new(0);
    let instances: Vec<_> = sites.iter().map(|_| OnceLock::new()).collect();
    let work: Vec<_> = sites.iter().zip(&feature_sets).zip(&instances).collect();
    let run = || {
        let mut loader = constants.loader();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(((site, features), made)) = work.get(index) else {
                return;
            };
            // Each index is taken once.
            let _ = made.set(site.instance(&constants, &mut loader, features));
        }
    };
    thread::scope(|scope| {
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 1..cpus.min(sites.len()) {
            // If no thread can be started, this one makes all instances.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    instances
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect()
}

/// An interface and the maps of its program.
struct ProgramSite<'p> {
    interface: &'p Interface,
    device: Device,
    maps: &'p SharedMaps,
    source_maps: &'p SourceMaps,
}

impl ProgramSite<'_> {
    fn instance<'c>(
        &self,
        constants: &Constants<'_>,
        loader: &mut EbpfLoader<'c>,
        features: &'c InMap<Features>,
    ) -> Result<Instance, DatapathError> {
        let directory = MapDirectory::new()?;
        self.maps.pin(directory.path())?;
        self.source_maps.pin(directory.path())?;
        let (object, shared) = (constants.object(), Some(directory.path()));
        let mut instance = Instance::prepare(object, constants, loader, features, shared)?;
        instance.verify()?;
        Ok(instance)
    }
}
