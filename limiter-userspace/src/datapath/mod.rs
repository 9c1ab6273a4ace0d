//! The datapath: the XDP program in the kernel, attached to interfaces, and what it holds.
//!
//! Each interface has an instance of the program of its own, so that what it differs in is
//! a constant to the verifier. The instances share the buckets and the counters; the tables
//! of a policy belong to the instances that were loaded with it. That is how one policy
//! replaces another: new instances are loaded beside the old ones and take over their links.

mod array;
mod attach;
mod batch;
mod buckets;
pub mod budget;
mod error;
mod hash;
mod instance;
pub mod interface;
pub mod log;
mod maps;
mod object;
mod offenders;
mod pod;
pub mod preflight;
mod refill;
mod shared;
mod trial;

use std::net::IpAddr;

use jiff::Timestamp;
use limiter_common::{
    address::Address,
    bucket::BucketKey,
    counters::{LimitTraffic, MAX_INTERFACES, Traffic},
    gcra::{Gcra, Level},
    limit::LimitId,
    policy::{Class, LimitEntry, Shape, classify, parameters},
    reason::Reason,
    table::HashKey,
};

pub use self::{
    attach::{AttachedMode, Attachment},
    buckets::{BucketMaps, Restored},
    error::DatapathError,
    instance::{Clocking, Instance, LogLevel},
    maps::SharedMaps,
    object::{OBJECT, OBJECT_WITH_LOG},
    offenders::{OffenderMaps, Recorded},
    refill::Refilled,
    trial::Trial,
};
use self::{interface::Interface, shared::SharedDirectory};
use crate::{
    config::{AttachMode, Buckets, Offenders},
    policy::{CompiledPolicy, Units},
    state::{Debts, StoredDebts},
};

/// What an instance is made from.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where the buckets are.
    pub buckets: Buckets,
    /// How many of those who were dropped are remembered.
    pub offenders: Offenders,
    /// Whether each verdict is logged.
    pub log: LogLevel,
    /// The secret of the table of buckets.
    hash_key: HashKey,
}

impl Settings {
    /// With a secret that is drawn now.
    pub fn new(
        buckets: Buckets,
        offenders: Offenders,
        log: LogLevel,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            buckets,
            offenders,
            log,
            hash_key: HashKey {
                first: getrandom::u64().map_err(DatapathError::Random)?,
                second: getrandom::u64().map_err(DatapathError::Random)?,
            },
        })
    }
}

impl Settings {
    /// With the secret of a table whose buckets are to be put back.
    #[must_use]
    pub const fn resuming(mut self, debts: &Debts) -> Self {
        if let StoredDebts::Table(table) = &debts.stored {
            self.hash_key = table.hash_key;
        }
        self
    }
}

/// The running datapath. Dropping it detaches every program.
pub struct Datapath {
    policy: CompiledPolicy,
    settings: Settings,
    attachments: Vec<Attachment>,
    maps: SharedMaps,
}

/// What one limit has for one address.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    /// The slot of the limit in the policy.
    pub slot: u32,
    /// The bucket.
    pub key: BucketKey,
    /// The parameters that hold for the address.
    pub gcra: Gcra,
    /// What the bucket holds.
    pub level: Level,
}

impl Datapath {
    /// Loads the policy and attaches it to every interface, or to none. `fill` may put something
    /// into the buckets before the first packet is charged to one.
    pub fn start(
        policy: CompiledPolicy,
        interfaces: &[Interface],
        mode: AttachMode,
        settings: Settings,
        fill: impl FnOnce(&BucketMaps, &Units) -> Result<(), DatapathError>,
    ) -> Result<Self, DatapathError> {
        if interfaces.len() > MAX_INTERFACES as usize {
            return Err(DatapathError::TooManyInterfaces(interfaces.len()));
        }
        let (mut instances, maps) = prepare(&policy, interfaces.len(), settings)?;
        for instance in &mut instances {
            instance.verify()?;
        }
        fill(maps.buckets(), &policy.units)?;
        let mut attachments = Vec::with_capacity(interfaces.len());
        for (slot, (instance, interface)) in (0..).zip(instances.into_iter().zip(interfaces)) {
            attachments.push(Attachment::new(instance, interface, slot, mode)?);
        }
        Ok(Self {
            policy,
            settings,
            attachments,
            maps,
        })
    }

    /// The interfaces it is attached to.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    /// The interfaces it is attached to, to take their logs.
    pub fn attachments_mut(&mut self) -> &mut [Attachment] {
        &mut self.attachments
    }

    /// What was counted under a reason on one interface.
    pub fn reason_traffic(
        &self,
        attachment: &Attachment,
        reason: Reason,
    ) -> Result<Traffic, DatapathError> {
        self.maps.reason_traffic(attachment.slot, reason)
    }

    /// What the instances were made from.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// What every bucket owes now.
    pub fn capture(&self) -> Result<Debts, DatapathError> {
        let buckets = self.maps.buckets();
        buckets.capture(&self.policy.units, monotonic_now())
    }

    /// How many buckets were forgotten while they were in debt, for want of room.
    pub fn lossy_evictions(&self) -> Result<u64, DatapathError> {
        self.maps.lossy_evictions()
    }

    /// The offenders.
    #[must_use]
    pub const fn offenders(&self) -> &OffenderMaps {
        self.maps.offenders()
    }

    /// What was counted for a limit on all interfaces.
    pub fn limit_traffic(&self, limit: LimitId) -> Result<LimitTraffic, DatapathError> {
        self.maps.limit_traffic(limit)
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
            let Some(gcra) = parameters(&self.policy, class, slot) else {
                continue;
            };
            for key in self.buckets_of(limit, class, &source) {
                holdings.push(Holding {
                    slot,
                    key,
                    gcra: *gcra,
                    level: self.level(&key, gcra, now)?,
                });
            }
        }
        Ok(holdings)
    }

    /// What a bucket of these parameters holds at the time `now_ns`.
    fn level(&self, key: &BucketKey, gcra: &Gcra, now_ns: u64) -> Result<Level, DatapathError> {
        let bucket = self.maps.bucket(key)?;
        let tat = bucket.map(|bucket| self.policy.units.tat(bucket, gcra.unit, now_ns));
        Ok(gcra.level(gcra.ticks(now_ns), tat))
    }

    /// The buckets of a limit that packets from `source` may be charged to: one, or one for
    /// each interface.
    fn buckets_of(&self, limit: &LimitEntry, class: &Class, source: &Address) -> Vec<BucketKey> {
        let on = |interface| {
            let shape = Shape {
                interface,
                ..self.policy.shape
            };
            limit.bucket(&shape, class, source, source.family.index())
        };
        let mut keys: Vec<_> = self
            .attachments
            .iter()
            .map(|attachment| on(attachment.slot))
            .collect();
        keys.dedup();
        keys
    }

    /// The name of the interface with a number of the datapath's.
    #[must_use]
    pub fn interface_name(&self, number: u32) -> Option<&str> {
        let mut attachments = self.attachments.iter();
        attachments
            .find(|attachment| attachment.slot == number)
            .map(|attachment| attachment.interface.as_str())
    }
}

/// Makes as many instances, still to be verified, and the maps that they share. These are pinned
/// no longer than this takes: the kernel's verifier may need a second.
fn prepare(
    policy: &CompiledPolicy,
    count: usize,
    settings: Settings,
) -> Result<(Vec<Instance>, SharedMaps), DatapathError> {
    let directory = SharedDirectory::new()?;
    let instances = (0..).take(count).map(|slot| {
        let shared = Some(directory.path());
        let object = settings.log.object();
        Instance::prepare(object, policy, slot, settings, Clocking::Kernel, shared)
    });
    let instances = instances.collect::<Result<_, _>>()?;
    Ok((instances, SharedMaps::open(directory.path(), settings)?))
}

/// The clock that the kernel program reads, in nanoseconds: `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_now() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of our own; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The time of day, for people.
#[must_use]
pub fn wall_clock_now() -> Timestamp {
    Timestamp::now()
}
