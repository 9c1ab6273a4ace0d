//! The levels of buckets: the tokens left for a source, a destination or a name.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use limiter_common::{
    address::{Address, Family},
    dns::{Message, match_message, slot_of},
    key::{BucketKey, KeyFields},
    limit::{IdFormat, KeyPart, LimitId},
    packet::Facts,
    packet::NameMatch,
    policy::{Class, LimitEntry, Tables as _, classify, rate_index, with_overrides},
    strategy::{Level, Parameters, gcra::Parts},
};
use limiter_policy::{
    config::Scope,
    policy::{DnsName, HashedName, RequestedName, ServerNames, hashed_names},
};

use super::{Datapath, DatapathError, LimitBucket, monotonic_now};

impl Datapath {
    /// The level of every limit that applies to packets from an address. Charges nothing. `to`: the
    /// destination, for limits with a bucket per destination; `None`: the host's own addresses.
    /// `requested_name`: the name in the packets, for any kind and flags of a query; without it, limits that
    /// count packets by name are left out.
    pub fn limit_buckets(
        &self,
        source: IpAddr,
        to: Option<IpAddr>,
        requested_name: Option<&RequestedName>,
    ) -> Result<Vec<LimitBucket>, DatapathError> {
        self.limit_buckets_of(source, to, requested_name, |_| true)
    }

    /// The zones by the numbers that name their buckets.
    #[must_use]
    pub const fn zones(&self) -> &HashMap<u64, DnsName> {
        &self.policy.zones
    }

    /// The names in a message's question that buckets know by hashes.
    #[must_use]
    pub fn hashed_names(&self, message: &mut Message) -> Vec<HashedName> {
        hashed_names(&self.policy, message)
    }

    /// The names of the section `server-names` by the numbers that name their buckets.
    #[must_use]
    pub fn server_names_by_number(&self) -> &HashMap<u64, DnsName> {
        &self.policy.server_names_by_number
    }

    /// The server names of the policy in force; `None`: no limit counts by them.
    #[must_use]
    pub fn server_names(&self) -> Option<&Arc<ServerNames>> {
        let are_needed = self.policy.features.by_server_name != 0;
        Some(&self.policy.server_names).filter(|_| are_needed)
    }

    /// The levels of the limits on all sources together. Their buckets are the same for every address, so
    /// the buckets of an address that no prefix names are read. Charges nothing.
    pub fn total_buckets(&self) -> Result<Vec<LimitBucket>, DatapathError> {
        let limits = &self.manifest.policy.limits;
        let is_total = |id| {
            let mut limits = limits.iter();
            limits.any(|limit| limit.id == id && limit.id_format == IdFormat::Total)
        };
        let source = Address::from(IpAddr::from(Ipv4Addr::UNSPECIFIED));
        // The first class is for IPv4 addresses in no prefix.
        match self.policy.classes.first() {
            Some(class) => {
                self.buckets_of_class((&source, None, &NameMatch::NOTHING), class, is_total)
            }
            None => Ok(Vec::new()),
        }
    }

    /// The levels of the `wanted` limits that apply to packets from an address.
    pub(super) fn limit_buckets_of(
        &self,
        source: IpAddr,
        to: Option<IpAddr>,
        requested_name: Option<&RequestedName>,
        wanted: impl Fn(LimitId) -> bool,
    ) -> Result<Vec<LimitBucket>, DatapathError> {
        let source = Address::from(source);
        let name_match = requested_name.map_or(NameMatch::NOTHING, |requested_name| {
            self.match_name(requested_name)
        });
        match classify(&self.policy, &source) {
            Some(class) => self.buckets_of_class((&source, to, &name_match), class, wanted),
            None => Ok(Vec::new()),
        }
    }

    /// The levels of the `wanted` limits with a bucket for `requested_name`, for any source.
    pub(super) fn limit_buckets_of_name(
        &self,
        requested_name: &RequestedName,
        wanted: impl Fn(LimitId) -> bool,
    ) -> Result<Vec<LimitBucket>, DatapathError> {
        let limits = &self.manifest.policy.limits;
        let is_of_name = |id| {
            let limit = limits.iter().find(|limit| limit.id == id);
            let key_part = limit.and_then(|limit| limit.id_format.key_part());
            let is_name = |by: KeyPart| by == KeyPart::ServerName || by.name_kind().is_some();
            key_part.is_some_and(is_name) && wanted(id)
        };
        let name_match = self.match_name(requested_name);
        let source = Address::from(IpAddr::from(Ipv4Addr::UNSPECIFIED));
        // The first class is for IPv4 addresses in no prefix.
        match self.policy.classes.first() {
            Some(class) => self.buckets_of_class((&source, None, &name_match), class, is_of_name),
            None => Ok(Vec::new()),
        }
    }

    /// The policy's result for a name, for any kind and flags of a query.
    fn match_name(&self, requested_name: &RequestedName) -> NameMatch {
        let question = match requested_name {
            RequestedName::Question(question) => question,
            RequestedName::ServerName(name) => {
                let name_match = self.policy.server_names.match_name(name);
                let overrides =
                    slot_of(&self.policy, name_match.zone).map_or(0, |slot| slot.overrides);
                return NameMatch {
                    overrides,
                    ..name_match
                };
            }
        };
        let mut name_match = NameMatch::NOTHING;
        for bytes in question.messages() {
            let mut message = Message::EMPTY;
            for (to, byte) in message.begin(bytes.len() as u64).iter_mut().zip(bytes) {
                *to = byte;
            }
            let one = match_message(&self.policy, &mut message);
            name_match = NameMatch {
                // A query has no server name.
                limits: name_match.limits | one.limits & self.policy.features.by_name,
                ..one
            };
        }
        name_match
    }

    /// The levels of the `wanted` limits that apply to packets from an address of a class.
    fn buckets_of_class(
        &self,
        packet: (&Address, Option<IpAddr>, &NameMatch),
        class: &Class,
        wanted: impl Fn(LimitId) -> bool,
    ) -> Result<Vec<LimitBucket>, DatapathError> {
        let now = monotonic_now();
        let (source, to, name_match) = packet;
        let name_match = &with_overrides(&self.policy, source, class, name_match);
        let counting = class.applies
            & (name_match.limits
                | self.policy.features.of_every_question()
                    & self.policy.features.of_every_server_name());
        let mut limit_buckets = Vec::new();
        for (limit_index, limit) in (0..).zip(&self.policy.limits) {
            if counting & (1 << limit_index) == 0 || !wanted(LimitId(limit.id)) {
                continue;
            }
            let rate_index = rate_index(&self.policy, class, name_match, limit_index);
            let Some(parameters) = self.policy.rate(rate_index) else {
                continue;
            };
            let parameters = self.in_force(limit_index, limit, parameters, now)?;
            for (interface, key) in self.buckets_of(limit, class, (source, to, name_match))? {
                let share = if self.policy.features.is_shared(limit_index) {
                    Some(self.share_of(limit, &key, now)?)
                } else {
                    None
                };
                limit_buckets.push(LimitBucket {
                    limit_index,
                    interface,
                    key,
                    rate_index,
                    parameters,
                    share,
                    level: self.level(interface, &key, (&parameters, share), now)?,
                });
            }
        }
        Ok(limit_buckets)
    }

    /// The parameters of a limit in force at the time `now_ns`; `parameters`: the policy's.
    pub(super) fn in_force(
        &self,
        limit_index: u32,
        limit: &LimitEntry,
        parameters: &Parameters,
        now_ns: u64,
    ) -> Result<Parameters, DatapathError> {
        let is_automatic = self.policy.features.is_automatic(limit_index);
        let Some(source_maps) = self.source_maps().filter(|_| is_automatic) else {
            return Ok(*parameters);
        };
        let rate = source_maps.rates().get(LimitId(limit.id))?;
        let of_floor = parameters.gcra.emission_interval;
        let interval = limit.interval_in_force(rate, of_floor, now_ns);
        Ok(parameters.at_interval(interval))
    }

    /// A bucket's level at the time `now_ns`, for packets from the interface with the number `interface`.
    /// Uses these parameters, or the given share of them if the limit is shared.
    pub(super) fn level(
        &self,
        interface: u32,
        key: &BucketKey,
        (parameters, share): (&Parameters, Option<Parts>),
        now_ns: u64,
    ) -> Result<Level, DatapathError> {
        let open = self.open_connections(key)?;
        let state = |key: &BucketKey, unit| match open {
            // The rate of such limits returns one token each nanosecond.
            Some(open) => Ok(Some(now_ns.saturating_add(open))),
            None => self.state_of_bucket(interface, key, unit, now_ns),
        };
        let log = parameters.log(|number| {
            let stamp = state(&key.of_part(number), parameters.stamp_unit);
            stamp.map(Option::unwrap_or_default)
        })?;
        let state = state(key, parameters.unit)?;
        Ok(match share {
            Some(share) => {
                let gcra = &parameters.gcra;
                gcra.level_of_share(gcra.ticks(now_ns), state, share)
            }
            None => parameters.level(now_ns, state, &log),
        })
    }

    /// A bucket's state in a unit at the time `now_ns`, for packets from the interface with the number
    /// `interface`; `None`: the bucket is missing.
    pub(super) fn state_of_bucket(
        &self,
        interface: u32,
        key: &BucketKey,
        unit: u32,
        now_ns: u64,
    ) -> Result<Option<u64>, DatapathError> {
        let bucket = match self.shared_maps.of(interface) {
            Some(maps) => maps.bucket(key)?,
            None => None,
        };
        Ok(bucket.map(|bucket| self.policy.units.state(bucket, unit, now_ns)))
    }

    /// The buckets of a limit that packets from `source` may be charged to, each with the interface number:
    /// one bucket, one per interface, including interfaces that do not exist yet, or one per destination.
    fn buckets_of(
        &self,
        limit: &LimitEntry,
        class: &Class,
        (source, to, name_match): (&Address, Option<IpAddr>, &NameMatch),
    ) -> Result<Vec<(u32, BucketKey)>, DatapathError> {
        let attached = self
            .attachments
            .iter()
            .map(|attachment| attachment.interface_number);
        let mut numbers: Vec<_> = attached.collect();
        let waiting = self.manifest.interface_numbers.values();
        let waiting: Vec<_> = waiting.filter(|number| !numbers.contains(number)).collect();
        numbers.extend(waiting);
        let mut buckets = Vec::new();
        for destination in self.destinations(limit, source.family, to)? {
            let facts = Facts {
                source: *source,
                destination_high: destination.high,
                destination_low: destination.low,
                ..Facts::NONE
            };
            buckets.extend(numbers.iter().map(|interface| {
                let key_fields = KeyFields {
                    facts: &facts,
                    subscriber: &class.subscriber,
                    name_match,
                    interface: &u64::from(*interface),
                };
                let key = limit.bucket(&key_fields, source.family.index());
                (*interface, key)
            }));
        }
        if self.settings().buckets.scope == Scope::Host {
            buckets.dedup_by_key(|(_, key)| *key);
        }
        Ok(buckets)
    }

    /// The destinations with their own bucket of a limit: `to`, or the host's own addresses; any single
    /// address if the limit ignores destinations.
    fn destinations(
        &self,
        limit: &LimitEntry,
        family: Family,
        to: Option<IpAddr>,
    ) -> Result<Vec<Address>, DatapathError> {
        let any = Address {
            family,
            high: 0,
            low: 0,
        };
        if !limit.is_of_destinations() {
            return Ok(vec![any]);
        }
        let all = match (to, self.source_maps()) {
            (Some(to), _) => vec![to],
            (None, Some(source_maps)) => {
                let mut own = source_maps.own().get()?;
                // No packet from outside goes to a loopback address.
                own.retain(|address| !address.is_loopback());
                own
            }
            (None, None) => Vec::new(),
        };
        let all = all.into_iter().map(Address::from);
        Ok(all.filter(|to| to.family == family).collect())
    }
}
