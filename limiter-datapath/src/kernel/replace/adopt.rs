//! Resumes from another daemon's pins.

use std::collections::BTreeMap;

use limiter_policy::policy::CompiledPolicy;

use super::{Adoption, PreviousPolicy, names_by_link};
use crate::kernel::{
    Attachment, Datapath, DatapathError,
    connections::RecountProgram,
    handshakes::{self, Handshakes},
    pins::{Manifest, PinnedPolicy, Pins},
    possible_cpus,
    program::Program,
    shared_map_sets::SharedMapSets,
};

impl Datapath {
    /// Takes over the pinned objects, and the previous policy if the one in force was not settled.
    pub fn adopt(pins: Pins) -> Result<Adoption, DatapathError> {
        let mut policies = pins.policies()?;
        let interfaces = pins.interfaces()?;
        let retained: Vec<_> = interfaces
            .iter()
            .filter_map(|interface| Some(interface.link.info().ok()?.program))
            .collect();
        let in_force = policies.iter().rposition(|policy| {
            let mut programs = policy.programs.values();
            programs.any(|program| retained.contains(&program.id()))
        });
        // If no interface is left, take the newest policy.
        let Some(index) = in_force.or_else(|| policies.len().checked_sub(1)) else {
            let interfaces = interfaces.into_iter();
            let attachments = interfaces.map(|found| Attachment::of_pinned(found, None));
            let attachments = attachments.collect();
            return Ok(Adoption::Links(pins, attachments));
        };
        let PinnedPolicy {
            manifest,
            mut programs,
            handshakes,
        } = policies.swap_remove(index);
        let shared_maps = SharedMapSets::open(&pins, &manifest)?;
        let later: Vec<_> = policies
            .extract_if(.., |policy| {
                policy.manifest.generation > manifest.generation
            })
            .collect();
        let mut before = policies
            .into_iter()
            .find(|policy| policy.manifest.generation < manifest.generation);
        let attachments: Vec<_> = interfaces
            .into_iter()
            .map(|interface| {
                let index = interface.index;
                // A change of the policy may have been interrupted between two interfaces.
                let of = |programs: &mut BTreeMap<u32, Program>| {
                    let program = programs.remove(&index)?;
                    retained.contains(&program.id()).then_some(program)
                };
                let program = of(&mut programs).or_else(|| of(&mut before.as_mut()?.programs));
                Attachment::of_pinned(interface, program)
            })
            .collect();
        let previous = match before {
            Some(PinnedPolicy {
                manifest: before,
                programs,
                handshakes,
            }) => Some(PreviousPolicy {
                policy: compiled(&before)?,
                shared_maps: (before.maps_generation != manifest.maps_generation)
                    .then(|| SharedMapSets::open(&pins, &before))
                    .transpose()?,
                manifest: before,
                migrated: None,
                programs,
                handshakes: Ok(handshakes),
                removed: Vec::new(),
                attached: names_by_link(&attachments),
            }),
            None => None,
        };
        let policy = compiled(&manifest)?;
        let handshakes = match (handshakes, shared_maps.source_maps()) {
            // The previous daemon could not load it, perhaps on another kernel or with fewer
            // rights.
            (None, Some(maps)) if pins.are_taken() => {
                handshakes::load_pinned(maps, shared_maps.of_host(), &manifest, &policy, &pins)
            }
            (handshakes, _) => Ok(handshakes),
        };
        let mut datapath = Self {
            policy,
            manifest,
            shared_maps,
            attachments,
            retained: Vec::new(),
            handshakes: Handshakes::adopt(handshakes, &pins)?,
            recounting: RecountProgram::default(),
            pins: Some(pins),
        };
        datapath.learn_units()?;
        // A read-only process changes nothing: the process that has taken the pins may be amid a
        // change.
        if datapath.pins.as_ref().is_some_and(Pins::are_taken) {
            datapath.clean_up(previous.as_ref(), &later)?;
        }
        Ok(Adoption::Datapath(
            Box::new(datapath),
            previous.map(Box::new),
        ))
    }

    /// Finishes the interrupted work of killed daemons.
    fn clean_up(
        &mut self,
        previous: Option<&PreviousPolicy>,
        later: &[PinnedPolicy],
    ) -> Result<(), DatapathError> {
        self.shared_maps.clean_up(&self.manifest.units)?;
        if let Some(PreviousPolicy {
            shared_maps: Some(shared_maps),
            manifest,
            ..
        }) = previous
        {
            shared_maps.clean_up(&manifest.units)?;
        }
        for policy in later {
            // The policy was reverted, or never in force.
            self.forget_limits_of(&policy.manifest)?;
        }
        self.forget_unused_interfaces()
    }
}

fn compiled(manifest: &Manifest) -> Result<CompiledPolicy, DatapathError> {
    let policy = CompiledPolicy::with_units(&manifest.policy, &manifest.units, possible_cpus())?;
    Ok(manifest.settings.keyed(policy))
}
