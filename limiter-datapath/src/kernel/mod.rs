//! The datapath: the XDP program in the kernel, attached to interfaces, and its maps.
//!
//! An instance of the program serves all interfaces with the same kind of frames and the same buckets, so a policy
//! is verified once for them; it finds the facts about an interface by the kernel's index (`interface_facts`).
//! Instances share the counters; a policy's tables belong to the instances loaded with it. To replace a policy, new
//! instances are loaded beside the old ones and take over their links (`replace`). Pinned objects outlive the daemon
//! (`pins`).

mod array;
mod attach;
mod batch;
mod btf;
mod buckets;
mod chain;
mod clock;
mod connections;
mod cpus;
mod error;
mod follow;
mod grace;
mod handshakes;
mod hash;
mod instance;
pub mod interface;
mod interface_facts;
mod levels;
mod link;
pub mod log;
mod map;
mod map_directory;
mod mapped_array;
mod maps;
mod migration;
mod moving;
mod object;
mod offenders;
mod pinned_maps;
pub mod pins;
mod pod;
pub mod preflight;
mod program;
mod repin;
mod replace;
mod reserved;
mod reset;
mod route_fields;
mod settings;
mod shared_map_sets;
mod sieves;
mod socket_fields;
mod source_maps;
mod stages;
mod standing;
mod superframes;
mod syscall;
mod tables;
mod trial;
mod verify;

use limiter_common::{
    answer::Answer,
    cookie::CookieCheck,
    counters::{LimitTraffic, Traffic},
    key::BucketKey,
    limit::LimitId,
    reason::Reason,
    standing::Standing,
    strategy::{Level, Parameters, gcra::Parts},
};
use limiter_policy::{
    lists::ListRecord,
    policy::{CompiledPolicy, Limit, automatic::rate_of},
};

#[cfg(feature = "testing")]
pub use self::instance::VerifierCost;
pub use self::{
    attach::{Attachment, InterfacePresence},
    buckets::{BucketMaps, BucketUse, RestoreCounts},
    clock::{monotonic_now, unix_ahead_ns, wall_clock_now},
    cpus::possible_cpus,
    error::{DatapathError, ProgramHolder},
    follow::NameChange,
    handshakes::HandshakesError,
    instance::{ClockSource, Instance},
    link::AttachedMode,
    maps::SharedMaps,
    moving::{MovingBucket, Shares},
    object::{OBJECT, OBJECT_WITH_LOG},
    offenders::{OffenderMaps, OffenderRecords},
    pins::{Manifest, Pins, PinsError},
    replace::{Adoption, PreparedPolicy, PreviousPolicy},
    reserved::{ReservedLevel, SourceStanding},
    reset::LevelChange,
    settings::{LogLevel, Settings},
    sieves::LoadedSieve,
    source_maps::{
        BanMaps, CachedNameMap, ConnectionMaps, ConnectionSizes, CookieMaps, FirstBytes,
        KeyShareMaps, Namer, OwnAddressMap, OwnConnectionMap, PressureMaps, QueueMaps, RateMap,
        RefusedQuestionMap, RmemMaxMap, ServerNameMaps, SieveMaps, SourceMaps, StandingMaps,
        StandingSizes,
    },
    standing::KnownSources,
    trial::Trial,
    verify::verify,
};
use self::{connections::RecountProgram, handshakes::Handshakes, shared_map_sets::SharedMapSets};
use crate::state::SetDebts;

/// The running datapath. Dropping it detaches every program that is not pinned.
pub struct Datapath {
    manifest: Manifest,
    policy: CompiledPolicy,
    shared_maps: SharedMapSets,
    attachments: Vec<Attachment>,
    /// The interface numbers of programs that go or come back once a change is settled.
    retained: Vec<u32>,
    handshakes: Handshakes,
    recounting: RecountProgram,
    pins: Option<Pins>,
}

/// One limit's bucket for one address.
#[derive(Clone, Copy, Debug)]
pub struct LimitBucket {
    /// The limit index.
    pub limit_index: u32,
    /// The number of the interface that the bucket belongs to; the first, if all interfaces share it.
    pub interface: u32,
    /// The bucket.
    pub key: BucketKey,
    /// The index of the applicable parameters in the policy.
    pub rate_index: u32,
    /// These parameters as they are in force now; for a shared limit, the parameters of the whole budget.
    pub parameters: Parameters,
    /// The share in force, if the limit is shared.
    pub share: Option<Parts>,
    /// The bucket's level.
    pub level: Level,
}

impl LimitBucket {
    /// The tokens in the bucket when it is full.
    #[must_use]
    pub fn when_full(&self) -> u64 {
        let Parameters { gcra, .. } = &self.parameters;
        match self.share {
            Some(share) => gcra.tokens(gcra.burst_offset, share),
            None => self.parameters.when_full(),
        }
    }
}

impl Datapath {
    /// Starts with no policy in force.
    pub fn new(settings: Settings) -> Result<Self, DatapathError> {
        let manifest = Manifest::empty(settings, wall_clock_now());
        Ok(Self {
            policy: CompiledPolicy::new(&manifest.policy, possible_cpus())?,
            shared_maps: SharedMapSets::new(manifest.maps_generation, settings),
            attachments: Vec::new(),
            retained: Vec::new(),
            handshakes: Handshakes::NONE,
            recounting: RecountProgram::default(),
            manifest,
            pins: None,
        })
    }

    /// Starts with no policy in force, but with links; the first policy replaces their programs. Applied
    /// policies are pinned.
    pub fn with_pins(
        settings: Settings,
        pins: Pins,
        attachments: Vec<Attachment>,
    ) -> Result<Self, DatapathError> {
        // Pins without a policy are left from an interrupted pinning.
        pins.remove_this_version()?;
        Ok(Self {
            handshakes: Handshakes::of_link(pins.handshakes()?),
            pins: Some(pins),
            attachments,
            ..Self::new(settings)?
        })
    }

    /// The manifest of the policy in force.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Records the origin of the lists in force: their files may have been rewritten with the same addresses.
    pub fn record_lists(&mut self, lists: Vec<ListRecord>) {
        self.manifest.lists = lists;
    }

    /// The attached interfaces, including vanished ones.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    /// The ids of the programs that are on interfaces.
    #[must_use]
    pub fn program_ids(&self) -> Vec<u32> {
        let attachments = self.attachments.iter();
        attachments.filter_map(Attachment::program_id).collect()
    }

    /// The pins, if there are any.
    #[must_use]
    pub const fn pins(&self) -> Option<&Pins> {
        self.pins.as_ref()
    }

    /// The traffic counted under a reason on one interface.
    pub fn reason_traffic(
        &self,
        attachment: &Attachment,
        reason: Reason,
    ) -> Result<Traffic, DatapathError> {
        self.shared_maps
            .reason_traffic(attachment.interface_number, reason)
    }

    /// The settings of the instances.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.manifest.settings
    }

    /// Captures every bucket's debt now.
    pub fn capture(&self) -> Result<Vec<SetDebts>, DatapathError> {
        self.capture_at(monotonic_now())
    }

    fn capture_at(&self, now_ns: u64) -> Result<Vec<SetDebts>, DatapathError> {
        let sets = self.shared_maps.by_interface();
        let debts = sets.map(|(number, maps)| {
            Ok(SetDebts {
                interface: number.and_then(|number| self.interface_name(number).map(str::to_owned)),
                debts: maps.buckets().capture(&self.policy.units, now_ns)?,
            })
        });
        debts.collect()
    }

    /// The number of buckets in debt, and the room for buckets.
    pub fn buckets_in_debt(&self) -> Result<BucketUse, DatapathError> {
        let now = monotonic_now();
        let mut found = BucketUse::default();
        for (_, maps) in self.shared_maps.by_interface() {
            found.in_debt += maps.buckets().in_debt(&self.policy.units, now)?;
            found.capacity += u64::from(self.settings().buckets.capacity);
        }
        Ok(found)
    }

    /// The number of buckets that were evicted in debt.
    pub fn lossy_evictions(&self) -> Result<u64, DatapathError> {
        self.shared_maps.lossy_evictions()
    }

    /// All recorded offenders.
    pub fn offenders(&self) -> Result<OffenderRecords, DatapathError> {
        self.shared_maps.offenders()
    }

    /// Whether handshakes prove sources.
    ///
    /// # Errors
    ///
    /// The policy in force wants it, but it fails for the returned reason.
    pub fn handshake_status(&self) -> Result<bool, &HandshakesError> {
        self.handshakes.status()
    }

    /// Whether connections that the host began are recorded, which exempts them.
    ///
    /// # Errors
    ///
    /// The policy in force wants it, but it fails for the returned reason.
    pub fn own_connection_status(&self) -> Result<bool, &HandshakesError> {
        if self.policy.features.own_connections == 0 {
            return Ok(false);
        }
        self.handshakes.status()
    }

    /// Whether connections are recorded for limits that count them by server name.
    ///
    /// # Errors
    ///
    /// The policy in force wants it, but it fails for the returned reason: these limits count no TCP.
    pub fn flow_status(&self) -> Result<bool, &HandshakesError> {
        if self.policy.features.by_server_name == 0 {
            return Ok(false);
        }
        self.handshakes.status()
    }

    /// The source maps; `None`: no policy has been in force yet.
    #[must_use]
    pub const fn source_maps(&self) -> Option<&SourceMaps> {
        self.shared_maps.source_maps()
    }

    /// The number of names cached for limits on new names; `None`: the policy in force has no such limits.
    #[must_use]
    pub fn cached_names(&self) -> Option<usize> {
        let features = &self.policy.features;
        let maps = self.source_maps().filter(|_| features.by_new_name != 0)?;
        Some(maps.cached_names().count(features.names_cached_for_ns))
    }

    /// The number of queries by the result of their DNS cookie check; empty: the policy checks no cookies.
    pub fn cookie_checks(&self) -> Result<Vec<(CookieCheck, u64)>, DatapathError> {
        let maps = self.source_maps().map(SourceMaps::cookies);
        let maps = maps.filter(|_| self.policy.features.cookie_port != 0);
        let checks = maps.into_iter().flat_map(|maps| {
            let checks = CookieCheck::ALL.into_iter();
            checks.map(|check| Ok((check, maps.count(check)?)))
        });
        checks.collect()
    }

    /// The traffic counted for a limit on all interfaces.
    pub fn limit_traffic(&self, limit: LimitId) -> Result<LimitTraffic, DatapathError> {
        self.shared_maps.limit_traffic(limit)
    }

    /// The traffic that each CPU counted for a limit on all interfaces, in CPU order.
    pub fn limit_traffic_by_cpu(&self, limit: LimitId) -> Result<Vec<LimitTraffic>, DatapathError> {
        self.shared_maps.limit_traffic_by_cpu(limit)
    }

    /// The traffic of a limit with a reserve by standing of the source, on all interfaces, in the order of
    /// [`Standing::ALL`].
    pub fn standing_traffic(
        &self,
        limit: LimitId,
    ) -> Result<[LimitTraffic; Standing::COUNT], DatapathError> {
        self.shared_maps.standing_traffic(limit)
    }

    /// The answers that a limit may send, with the number of answers sent for it on all interfaces.
    pub fn answer_traffic(&self, limit: &Limit) -> Result<Vec<(Answer, Traffic)>, DatapathError> {
        let deny = limit.answers();
        let sends = |answer: &Answer| deny.is_some_and(|deny| deny.sends(*answer));
        let answers = Answer::ALL.into_iter();
        answers
            .filter(|answer| *answer != Answer::Drop && sends(answer))
            .map(|answer| Ok((answer, self.shared_maps.answer_traffic(limit.id, answer)?)))
            .collect()
    }

    /// The rate in force of a limit with an automatic rate, in whole tokens a second; `None`: the rate is not
    /// automatic.
    pub fn automatic_rate(&self, limit: LimitId) -> Result<Option<u64>, DatapathError> {
        let mut limits = (0..).zip(self.policy.limits.iter().zip(&self.policy.rates));
        let Some((limit_index, (limit, floor))) = limits.find(|(_, (one, _))| one.id == limit.0)
        else {
            return Ok(None);
        };
        if !self.policy.features.is_automatic(limit_index) {
            return Ok(None);
        }
        let parameters = self.in_force(limit_index, limit, floor, monotonic_now())?;
        Ok(Some(rate_of(parameters.gcra.emission_interval)))
    }

    /// The name of the interface with the number `number`.
    #[must_use]
    pub fn interface_name(&self, number: u32) -> Option<&str> {
        let mut attachments = self.attachments.iter();
        attachments
            .find(|attachment| attachment.interface_number == number)
            .map(|attachment| attachment.interface.as_str())
            .or_else(|| self.manifest.name_of_interface(number))
    }
}
