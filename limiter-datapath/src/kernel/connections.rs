//! Counts the connections in the network stack's list: connections older than the counting, and connections that
//! ended without an event.

use std::{
    array,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use limiter_common::{
    connection::{
        ConnectionOrder, Ends, MOST_LIMITS, Place, Places, find_places, queue::QueueSettings,
    },
    limit::LimitId,
    owner::BucketKey,
    packet::NameMatch,
    policy::LimitEntry,
};
use limiter_policy::policy::CompiledPolicy;

use super::{
    BucketMaps, Datapath, DatapathError, LimitBucket, ReputationMaps, Settings, handshakes,
    object::PROGRAM_RECOUNT, program::Program, stages,
};

/// The kernel program that counts connections for userspace, with the number of its policy. Loaded for the
/// policy's first order.
#[derive(Debug, Default)]
pub(super) struct RecountProgram(Mutex<Option<(u64, Program)>>);

impl Datapath {
    /// Whether the policy in force limits connections.
    #[must_use]
    pub const fn counts_connections(&self) -> bool {
        self.policy.shape.connections != 0
    }

    /// Whether the policy in force limits handshakes.
    #[must_use]
    pub const fn limits_handshakes(&self) -> bool {
        self.policy.shape.handshakes != 0
    }

    /// The queue settings of the limit with the interned id `limit`, by the policy in force.
    #[must_use]
    pub const fn queue_of(&self, limit: u64) -> QueueSettings {
        self.policy.shape.queue_of(limit)
    }

    /// The number of clients in the queue for connections of a bucket's owner, now or a short time ago; `None`:
    /// the limit has no queue.
    pub fn waiting(&self, key: &BucketKey) -> Result<Option<u64>, DatapathError> {
        let settings = self.queue_of(key.limit.into());
        let (true, Some(maps)) = (settings.size != 0, self.reputation()) else {
            return Ok(None);
        };
        let place = self.place(key);
        let mut waiting = 0;
        for place in [place, place.of_unknown()] {
            let queue = maps.connections().queues().queue(place)?;
            waiting += queue.tail.saturating_sub(queue.head);
        }
        Ok(Some(waiting))
    }

    /// Has the kernel count connections and charge handshakes by the policy in force.
    pub fn recount(&self, orders: &[ConnectionOrder]) -> Result<(), DatapathError> {
        if orders.is_empty() || !self.counts_connections() && !self.limits_handshakes() {
            return Ok(());
        }
        let mut loaded = self
            .recounting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let generation = self.manifest.generation;
        let program = match loaded.take() {
            Some((of, program)) if of == generation => program,
            _ => {
                let maps = self.reputation().ok_or(DatapathError::NoPolicy)?;
                load_recounting(maps, self.kept.of_host(), self.settings(), &self.policy)?
            }
        };
        let (_, program) = loaded.insert((generation, program));
        for order in orders {
            program.run_on(order).map_err(DatapathError::Order)?;
        }
        Ok(())
    }

    /// The places where the policy in force counts a connection, in the order of its limits on connections, as
    /// the kernel's program finds them. A group with a shared count has its place at the group's first limit.
    #[must_use]
    pub fn places(&self, ends: &Ends) -> Places {
        let mut places = Places::NONE;
        if !ends.are_both_own() {
            find_places(&self.policy, ends, &self.asked_of(ends), &mut places);
        }
        // At most one limit of a group counts the connection.
        let Places(found) = places;
        let mut by_first = [0; MOST_LIMITS];
        for (index, place) in found.into_iter().enumerate() {
            by_first[self.policy.shape.first_of_group(index)] |= place;
        }
        Places(by_first)
    }

    /// The policy's answer for the server name of a connection, once the connection has its place under the
    /// name.
    fn asked_of(&self, ends: &Ends) -> NameMatch {
        let shape = &self.policy.shape;
        let maps = self.reputation().filter(|_| shape.named_connections() != 0);
        // If the map cannot be read, the displayed count lacks the connection.
        let flow = maps.and_then(|maps| maps.server_names().flow(ends).ok().flatten());
        flow.map_or(NameMatch::NOTHING, |flow| flow.counted_as(shape))
    }

    /// The number of connections that each limit counts, in the order of the policy's limits on connections. All
    /// limits of a group show the group's count.
    #[must_use]
    pub fn open_by_limit(&self) -> [u64; MOST_LIMITS] {
        let Some(maps) = self.reputation().filter(|_| self.counts_connections()) else {
            return [0; MOST_LIMITS];
        };
        let first_of_group = |index| self.policy.shape.first_of_group(index);
        let mut by_first = [0; MOST_LIMITS];
        for (index, open) in maps.connections().open_by_limit().into_iter().enumerate() {
            by_first[first_of_group(index)] += open;
        }
        array::from_fn(|index| by_first[first_of_group(index)])
    }

    /// The index, among the limits on connections, of the limit that holds the count of the limit at `index`.
    #[must_use]
    pub const fn first_of_group(&self, index: usize) -> usize {
        self.policy.shape.first_of_group(index)
    }

    /// The bucket in which `limit` counts, at `place`, a connection between `peer` and `own`, the host's
    /// address. `None`: the policy in force does not count the connection there.
    pub fn bucket_at(
        &self,
        limit: LimitId,
        place: Place,
        [peer, own]: [IpAddr; 2],
    ) -> Result<Option<LimitBucket>, DatapathError> {
        let limit_buckets = self.limit_buckets_of(peer, Some(own), None, |id| id == limit)?;
        let mut limit_buckets = limit_buckets.into_iter();
        Ok(limit_buckets.find(|found| self.place(&found.key) == place))
    }

    /// The number of open connections of a bucket's owner by its limit; `None`: the limit is not on connections.
    pub(super) fn open_connections(&self, key: &BucketKey) -> Result<Option<u64>, DatapathError> {
        let mut limits = (0..64_u32).zip(&self.policy.limits);
        let is_counted = limits.any(|(limit_index, limit)| {
            LimitId(limit.id) == LimitId(key.limit)
                && self.policy.shape.connections >> limit_index & 1 == 1
        });
        let (true, Some(maps)) = (is_counted, self.reputation()) else {
            return Ok(None);
        };
        maps.connections().open(self.place(key)).map(Some)
    }

    /// The place that counts the connections of a bucket's owner.
    fn place(&self, key: &BucketKey) -> Place {
        let hash_key = &self.settings().hash_key;
        let counted_as = self.counted_as(LimitId(key.limit));
        Place::new(hash_key, &key.of_limit(counted_as))
    }

    /// The limit that holds the count of `limit`: the first of its group, or itself.
    fn counted_as(&self, limit: LimitId) -> LimitId {
        let mut limits = self.policy.limits.iter();
        let found = limits.find(|entry| LimitId(entry.id) == limit);
        found.map_or(limit, LimitEntry::counted_with)
    }
}

pub(super) fn load_recounting(
    maps: &ReputationMaps,
    buckets: Option<&BucketMaps>,
    settings: Settings,
    policy: &CompiledPolicy,
) -> Result<Program, DatapathError> {
    let mut ebpf = handshakes::prepare(maps, buckets, settings, policy, 0)?;
    let program = stages::program(&mut ebpf, PROGRAM_RECOUNT)?;
    program.load().map_err(DatapathError::Verify)?;
    let program = program.fd().and_then(Program::of);
    program.map_err(DatapathError::Verify)
}
