//! Source tables in plain memory.

mod bans;
mod connections;
mod cookies;
mod flows;
mod names;
mod own;
mod own_connections;
mod queues;
mod sieves;

use limiter_common::{
    address::Address,
    answer,
    ban::{self, BanKey, BanMatch},
    cached_names,
    classified_packet::ClassifiedPacket,
    clock::Clock,
    connection::{
        CountId, Ends,
        queue::{self, OpeningId, QueueSettings, Queues as _, Turn},
    },
    cookie::{CookieCheck, CookieKeys},
    counters::Traffic,
    decide::{self, Verdict},
    policy::{Features, Tables},
    server_name,
    source_tables::SourceTables,
    sources::StandingTable,
};

pub use self::{
    bans::MemoryBans, connections::MemoryConnections, cookies::MemoryCookies, flows::MemoryFlows,
    names::MemoryNames, own::MemoryOwnAddresses, own_connections::MemoryOwnConnections,
    queues::MemoryQueues, sieves::MemorySieves,
};
use super::MemoryStanding;

/// Bans, sieves, known sources, the host's own addresses, cookie keys, and connections, in memory.
#[derive(Debug, Default)]
pub struct MemorySourceTables {
    /// The bans.
    pub bans: MemoryBans,
    /// The sieves.
    pub sieves: MemorySieves,
    /// The known sources.
    pub standing: MemoryStanding,
    /// The host's own addresses.
    pub own: MemoryOwnAddresses,
    /// The keys of DNS cookies, and the results of the checks.
    pub cookies: MemoryCookies,
    /// The open connections.
    pub connections: MemoryConnections,
    /// The connections that the host began.
    pub own_connections: MemoryOwnConnections,
    /// The connections and QUIC flows with names.
    pub flows: MemoryFlows,
    /// The cached names.
    pub names: MemoryNames,
    /// The queues of clients that wait for slots.
    pub queues: MemoryQueues,
}

impl SourceTables for MemorySourceTables {
    fn sources(&self) -> &impl StandingTable {
        &self.standing
    }

    fn banned_as<C: Clock>(&self, source: &Address, clock: &C) -> BanMatch {
        if ban::any(&self.bans, source.family) {
            ban::banned_as(&self.bans, source, || clock.now())
        } else {
            BanMatch::NOT
        }
    }

    fn count_hit(&self, key: &BanKey, traffic: Traffic) {
        self.bans.count_hit(key, traffic);
    }

    fn sift<T: Tables>(
        &self,
        tables: &T,
        packet: &ClassifiedPacket,
        verdict: &mut Verdict,
    ) -> bool {
        decide::sift(tables, &self.sieves, packet, verdict)
    }

    fn is_name_cached(&self, features: &Features, hash: u64, now_ns: u64) -> bool {
        cached_names::is_cached(&self.names.lines(features), features, hash, now_ns)
    }

    fn enter_name(&self, features: &Features, hash: u64, now_ns: u64) {
        cached_names::enter(&self.names.lines(features), hash, now_ns);
    }

    fn may_be_own(&self, address: &Address) -> bool {
        answer::may_be_own(&self.own, address)
    }

    fn cookie_keys(&self) -> CookieKeys {
        self.cookies.keys
    }

    fn connections(&self, count_id: CountId) -> u64 {
        self.connections.open(count_id)
    }

    fn waiting(&self, settings: &QueueSettings, count_id: CountId, now_ns: u64) -> u64 {
        self.queues.ahead(settings, count_id, u64::MAX, now_ns)
    }

    fn turn(
        &self,
        settings: &QueueSettings,
        count_id: CountId,
        opening_id: OpeningId,
        room: u64,
        now_ns: u64,
    ) -> Turn {
        queue::turn(&self.queues, settings, count_id, opening_id, room, now_ns)
    }

    fn is_of_own_connection(&self, packet: &ClassifiedPacket) -> bool {
        self.own_connections.contain(packet)
    }

    fn flow(&self, ends: &Ends) -> Option<server_name::FlowRecord> {
        self.flows.flow(ends)
    }

    fn quic_flow(&self, ends: &Ends, now_ns: u64) -> Option<server_name::Meaning> {
        self.flows.see_quic(ends, now_ns)
    }

    fn first_bytes(&self, ends: &Ends) -> Option<server_name::FirstBytes> {
        self.flows.first_bytes(ends)
    }

    fn hold(&self, ends: &Ends, segment: (u32, u32), now_ns: u64) -> bool {
        self.flows.hold(ends, segment, now_ns)
    }

    fn follow(
        &self,
        ends: &Ends,
        segment: (u32, u32),
        load: impl Fn(u32, u32) -> Option<u64>,
    ) -> Option<server_name::SegmentFate> {
        self.flows.follow(ends, segment, load)
    }

    fn serve(&self, ends: &Ends) {
        self.flows.serve(ends);
    }

    fn make_wait(&self, ends: &Ends) {
        self.flows.make_wait(ends);
    }

    fn count_connection(&self, count_id: CountId) {
        self.connections.add(count_id);
    }

    fn count_cookie(&self, check: CookieCheck) {
        self.cookies.add(check);
    }
}
