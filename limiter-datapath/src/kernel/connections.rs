//! Counts the connections in the network stack's list: connections older than the counting, and connections that
//! ended without an event.

use std::{
    array,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use limiter_common::{
    connection::{
        ConnectionOrder, CountId, CountIds, Ends, MOST_LIMITS, find_count_ids, queue::QueueSettings,
    },
    key::BucketKey,
    limit::LimitId,
    packet::NameMatch,
    policy::LimitEntry,
};
use limiter_policy::policy::CompiledPolicy;

use super::{
    BucketMaps, Datapath, DatapathError, LimitBucket, Settings, SourceMaps, handshakes,
    object::PROGRAM_RECOUNT, program::Program, stages, verify::verify,
};

/// The kernel program that counts connections for userspace, with the number of its policy. Loaded for the
/// policy's first order.
#[derive(Debug, Default)]
pub(super) struct RecountProgram(Mutex<Option<(u64, Program)>>);

impl Datapath {
    /// Whether the policy in force limits connections.
    #[must_use]
    pub const fn counts_connections(&self) -> bool {
        self.policy.features.connections != 0
    }

    /// Whether the policy in force limits handshakes.
    #[must_use]
    pub const fn limits_handshakes(&self) -> bool {
        self.policy.features.handshakes != 0
    }

    /// The queue settings of the limit with the interned id `limit`, by the policy in force.
    #[must_use]
    pub const fn queue_of(&self, limit: u64) -> QueueSettings {
        self.policy.features.queue_of(limit)
    }

    /// The number of clients in the queue for connections of a bucket's key, now or a short time ago; `None`:
    /// the limit has no queue.
    pub fn waiting(&self, key: &BucketKey) -> Result<Option<u64>, DatapathError> {
        let settings = self.queue_of(key.limit.into());
        let (true, Some(maps)) = (settings.size != 0, self.source_maps()) else {
            return Ok(None);
        };
        let count_id = self.count_id(key);
        let mut waiting = 0;
        for count_id in [count_id, count_id.of_unknown()] {
            let queue = maps.connections().queues().queue(count_id)?;
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
                let maps = self.source_maps().ok_or(DatapathError::NoPolicy)?;
                load_recounting(
                    maps,
                    self.shared_maps.of_host(),
                    self.settings(),
                    &self.policy,
                )?
            }
        };
        let (_, program) = loaded.insert((generation, program));
        for order in orders {
            program.run_on(order).map_err(DatapathError::Order)?;
        }
        Ok(())
    }

    /// The count ids under which the policy in force counts a connection, in the order of its limits on connections, as
    /// the kernel's program finds them. A group with a shared count has its count id at the group's first limit.
    #[must_use]
    pub fn count_ids(&self, ends: &Ends) -> CountIds {
        let mut count_ids = CountIds::NONE;
        if !ends.are_both_own() {
            find_count_ids(
                &self.policy,
                ends,
                &self.connection_name_match(ends),
                &mut count_ids,
            );
        }
        // At most one limit of a group counts the connection.
        let CountIds(found) = count_ids;
        let mut by_first = [0; MOST_LIMITS];
        for (index, count_id) in found.into_iter().enumerate() {
            by_first[self.policy.features.first_of_group(index)] |= count_id;
        }
        CountIds(by_first)
    }

    /// The policy's result for the server name of a connection, once the connection is admitted under the
    /// name.
    fn connection_name_match(&self, ends: &Ends) -> NameMatch {
        let features = &self.policy.features;
        let maps = self
            .source_maps()
            .filter(|_| features.named_connections() != 0);
        // If the map cannot be read, the displayed count lacks the connection.
        let flow = maps.and_then(|maps| maps.server_names().flow(ends).ok().flatten());
        flow.map_or(NameMatch::NOTHING, |flow| flow.counted_as(features))
    }

    /// The number of connections that each limit counts, in the order of the policy's limits on connections. All
    /// limits of a group show the group's count.
    #[must_use]
    pub fn open_by_limit(&self) -> [u64; MOST_LIMITS] {
        let Some(maps) = self.source_maps().filter(|_| self.counts_connections()) else {
            return [0; MOST_LIMITS];
        };
        let first_of_group = |index| self.policy.features.first_of_group(index);
        let mut by_first = [0; MOST_LIMITS];
        for (index, open) in maps.connections().open_by_limit().into_iter().enumerate() {
            by_first[first_of_group(index)] += open;
        }
        array::from_fn(|index| by_first[first_of_group(index)])
    }

    /// The index, among the limits on connections, of the limit that holds the count of the limit at `index`.
    #[must_use]
    pub const fn first_of_group(&self, index: usize) -> usize {
        self.policy.features.first_of_group(index)
    }

    /// The bucket in which `limit` counts, at `count_id`, a connection between `peer` and `own`, the host's
    /// address. `None`: the policy in force does not count the connection there.
    pub fn bucket_at(
        &self,
        limit: LimitId,
        count_id: CountId,
        [peer, own]: [IpAddr; 2],
    ) -> Result<Option<LimitBucket>, DatapathError> {
        let limit_buckets = self.limit_buckets_of(peer, Some(own), None, |id| id == limit)?;
        let mut limit_buckets = limit_buckets.into_iter();
        Ok(limit_buckets.find(|found| self.count_id(&found.key) == count_id))
    }

    /// The number of open connections of a bucket's key by its limit; `None`: the limit is not on connections.
    pub(super) fn open_connections(&self, key: &BucketKey) -> Result<Option<u64>, DatapathError> {
        let mut limits = (0..64_u32).zip(&self.policy.limits);
        let is_counted = limits.any(|(limit_index, limit)| {
            LimitId(limit.id) == LimitId(key.limit)
                && self.policy.features.connections >> limit_index & 1 == 1
        });
        let (true, Some(maps)) = (is_counted, self.source_maps()) else {
            return Ok(None);
        };
        maps.connections().open(self.count_id(key)).map(Some)
    }

    /// The count id that counts the connections of a bucket's key.
    fn count_id(&self, key: &BucketKey) -> CountId {
        let hash_key = &self.settings().hash_key;
        let counted_as = self.counted_as(LimitId(key.limit));
        CountId::new(hash_key, &key.of_limit(counted_as))
    }

    /// The limit that holds the count of `limit`: the first of its group, or itself.
    fn counted_as(&self, limit: LimitId) -> LimitId {
        let mut limits = self.policy.limits.iter();
        let found = limits.find(|entry| LimitId(entry.id) == limit);
        found.map_or(limit, LimitEntry::counted_with)
    }
}

pub(super) fn load_recounting(
    maps: &SourceMaps,
    buckets: Option<&BucketMaps>,
    settings: Settings,
    policy: &CompiledPolicy,
) -> Result<Program, DatapathError> {
    let mut ebpf = handshakes::prepare(maps, buckets, settings, policy, 0)?;
    let program = stages::program(&mut ebpf, PROGRAM_RECOUNT)?;
    verify(|| program.load()).map_err(DatapathError::Verify)?;
    let program = program.fd().and_then(Program::of);
    program.map_err(DatapathError::Verify)
}
