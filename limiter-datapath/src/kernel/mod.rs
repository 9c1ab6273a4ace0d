//! The datapath: the XDP program in the kernel, attached to interfaces, and what it holds.
//!
//! Each interface has an instance of the program of its own, so that what it differs in is
//! a constant to the verifier. The instances share the buckets and the counters; the tables
//! of a policy belong to the instances that were loaded with it. That is how one policy
//! replaces another: new instances are loaded beside the old ones and take over their links
//! (`replace`). What is pinned outlives the daemon (`pins`).

mod array;
mod attach;
mod batch;
mod buckets;
mod carry;
mod chain;
mod clock;
mod cpus;
mod error;
mod follow;
mod grace;
mod hash;
mod instance;
pub mod interface;
mod link;
pub mod log;
mod map;
mod mapped;
mod maps;
mod named;
mod object;
mod offenders;
pub mod pins;
mod pod;
pub mod preflight;
mod program;
mod refill;
mod replace;
mod reputation;
mod settings;
mod shared;
mod sieves;
mod stages;
mod state;
mod syscall;
mod trial;

use std::net::IpAddr;

use limiter_common::{
    address::Address,
    counters::{LimitTraffic, Traffic},
    limit::LimitId,
    owner::{BucketKey, Known},
    packet::Facts,
    policy::{Class, LimitEntry, classify, parameters},
    reason::Reason,
    strategy::{Budget, Level},
};
use limiter_policy::{config::Scope, lists::ListRecord, policy::CompiledPolicy};

#[cfg(feature = "testing")]
pub use self::instance::VerifierCost;
use self::state::State;
pub use self::{
    attach::Attachment,
    buckets::{BucketMaps, Restored},
    clock::{monotonic_now, wall_clock_now},
    cpus::possible_cpus,
    error::{DatapathError, Holder},
    follow::{Noticed, Present},
    instance::{Clocking, Instance},
    link::AttachedMode,
    maps::SharedMaps,
    object::{OBJECT, OBJECT_WITH_LOG},
    offenders::{OffenderMaps, Recorded},
    pins::{Manifest, Pins},
    refill::Refilled,
    replace::{Adopted, Prepared, Previous},
    reputation::{BanMaps, PressureMaps, ReputationMaps, SieveMaps},
    settings::{LogLevel, Settings},
    sieves::LoadedSieve,
    trial::Trial,
};
use crate::state::SetDebts;

/// The running datapath. Dropping it detaches every program, unless it is pinned.
pub struct Datapath {
    manifest: Manifest,
    policy: CompiledPolicy,
    state: State,
    attachments: Vec<Attachment>,
    pins: Option<Pins>,
}

/// What one limit has for one address.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    /// The slot of the limit in the policy.
    pub slot: u32,
    /// The interface, by the daemon's number for it, the packets of which are charged to the
    /// bucket; where all share it, the first.
    pub interface: u32,
    /// The bucket.
    pub key: BucketKey,
    /// The parameters that hold for the address.
    pub budget: Budget,
    /// What the bucket holds.
    pub level: Level,
}

impl Datapath {
    /// With no policy in force.
    pub fn new(settings: Settings) -> Result<Self, DatapathError> {
        let manifest = Manifest::empty(settings);
        Ok(Self {
            policy: CompiledPolicy::new(&manifest.policy, possible_cpus())?,
            state: State::new(manifest.state, settings),
            attachments: Vec::new(),
            manifest,
            pins: None,
        })
    }

    /// With no policy in force, but with links whose programs are to be replaced; what is applied
    /// will be pinned.
    pub fn with_pins(
        settings: Settings,
        pins: Pins,
        attachments: Vec<Attachment>,
    ) -> Result<Self, DatapathError> {
        // What is there without a policy was cut short while it was pinned.
        pins.remove_this_version()?;
        Ok(Self {
            pins: Some(pins),
            attachments,
            ..Self::new(settings)?
        })
    }

    /// What is in force.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Notes where the lists in force come from: their files may have been written anew, with the
    /// same addresses.
    pub fn note_lists(&mut self, lists: Vec<ListRecord>) {
        self.manifest.lists = lists;
    }

    /// The interfaces it is attached to, and those that have vanished.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    /// The ids of its programs that are on interfaces.
    #[must_use]
    pub fn program_ids(&self) -> Vec<u32> {
        let attachments = self.attachments.iter();
        attachments.filter_map(Attachment::program_id).collect()
    }

    /// Where it is pinned.
    #[must_use]
    pub const fn pins(&self) -> Option<&Pins> {
        self.pins.as_ref()
    }

    /// What was counted under a reason on one interface.
    pub fn reason_traffic(
        &self,
        attachment: &Attachment,
        reason: Reason,
    ) -> Result<Traffic, DatapathError> {
        self.state.reason_traffic(attachment.slot, reason)
    }

    /// What the instances were made from.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.manifest.settings
    }

    /// What every bucket owes now.
    pub fn capture(&self) -> Result<Vec<SetDebts>, DatapathError> {
        self.capture_at(monotonic_now())
    }

    /// What every bucket owes at the time `now_ns`.
    fn capture_at(&self, now_ns: u64) -> Result<Vec<SetDebts>, DatapathError> {
        let sets = self.state.by_slot();
        let debts = sets.map(|(slot, maps)| {
            Ok(SetDebts {
                interface: slot.and_then(|slot| self.interface_name(slot).map(str::to_owned)),
                debts: maps.buckets().capture(&self.policy.units, now_ns)?,
            })
        });
        debts.collect()
    }

    /// How many buckets were forgotten while they were in debt, for want of room.
    pub fn lossy_evictions(&self) -> Result<u64, DatapathError> {
        self.state.lossy_evictions()
    }

    /// Everyone who was recorded as an offender.
    pub fn offenders(&self) -> Result<Recorded, DatapathError> {
        self.state.offenders()
    }

    /// What is known of sources; `None`: no policy is in force yet.
    #[must_use]
    pub const fn reputation(&self) -> Option<&ReputationMaps> {
        self.state.reputation()
    }

    /// What was counted for a limit on all interfaces.
    pub fn limit_traffic(&self, limit: LimitId) -> Result<LimitTraffic, DatapathError> {
        self.state.limit_traffic(limit)
    }

    /// What every limit that applies to an address has for it now. Charges nothing.
    pub fn holdings(&self, source: IpAddr) -> Result<Vec<Holding>, DatapathError> {
        self.holdings_of(source, |_| true)
    }

    /// The same of some limits.
    fn holdings_of(
        &self,
        source: IpAddr,
        wanted: impl Fn(LimitId) -> bool,
    ) -> Result<Vec<Holding>, DatapathError> {
        let now = monotonic_now();
        let source = Address::from(source);
        let mut holdings = Vec::new();
        let Some(class) = classify(&self.policy, &source) else {
            return Ok(holdings);
        };
        for (slot, limit) in (0..).zip(&self.policy.limits) {
            if class.applies & (1 << slot) == 0 || !wanted(LimitId(limit.id)) {
                continue;
            }
            let Some(budget) = parameters(&self.policy, class, slot) else {
                continue;
            };
            for (interface, key) in self.buckets_of(limit, class, &source) {
                holdings.push(Holding {
                    slot,
                    interface,
                    key,
                    budget: *budget,
                    level: self.level(interface, &key, budget, now)?,
                });
            }
        }
        Ok(holdings)
    }

    /// What a bucket of these parameters holds at the time `now_ns`, for packets from the
    /// interface of that number.
    fn level(
        &self,
        interface: u32,
        key: &BucketKey,
        budget: &Budget,
        now_ns: u64,
    ) -> Result<Level, DatapathError> {
        let state = |key: &BucketKey, unit| -> Result<_, DatapathError> {
            let bucket = match self.state.of(interface) {
                Some(maps) => maps.bucket(key)?,
                None => None,
            };
            Ok(bucket.map(|bucket| self.policy.units.state(bucket, unit, now_ns)))
        };
        let log = budget.log(|number| {
            let stamp = state(&key.of_stamp(number), budget.stamp_unit);
            stamp.map(Option::unwrap_or_default)
        })?;
        Ok(budget.level(now_ns, state(key, budget.unit)?, &log))
    }

    /// The buckets of a limit that packets from `source` may be charged to, and the interface on
    /// which: one, or one for each interface, also for those that are not there yet.
    fn buckets_of(
        &self,
        limit: &LimitEntry,
        class: &Class,
        source: &Address,
    ) -> Vec<(u32, BucketKey)> {
        let facts = Facts {
            source: *source,
            ..Facts::NONE
        };
        let on = |interface| {
            let known = Known {
                facts: &facts,
                subscriber: &class.subscriber,
                interface: &interface,
            };
            let key = limit.bucket(&known, source.family.index());
            (interface, key)
        };
        let attached = self.attachments.iter().map(|attachment| attachment.slot);
        let mut slots: Vec<_> = attached.collect();
        let waiting = self.manifest.slots.values();
        let waiting: Vec<_> = waiting.filter(|slot| !slots.contains(slot)).collect();
        slots.extend(waiting);
        let mut buckets: Vec<_> = slots.into_iter().map(on).collect();
        if self.settings().buckets.scope == Scope::Host {
            buckets.dedup_by_key(|(_, key)| *key);
        }
        buckets
    }

    /// The name of the interface with a number of the datapath's.
    #[must_use]
    pub fn interface_name(&self, number: u32) -> Option<&str> {
        let mut attachments = self.attachments.iter();
        attachments
            .find(|attachment| attachment.slot == number)
            .map(|attachment| attachment.interface.as_str())
            .or_else(|| self.manifest.name_of_slot(number))
    }
}
