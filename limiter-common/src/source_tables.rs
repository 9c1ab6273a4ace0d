//! Reputation of sources apart from their budgets: bans, sieves, standing and cookies. The trait joins the tables that
//! the kernel program keeps in maps and the native pipeline in memory.

use crate::{
    address::Address,
    ban::{BanKey, BanMatch},
    classified_packet::ClassifiedPacket,
    clock::Clock,
    connection::{
        CountId, Ends,
        queue::{OpeningId, QueueSettings, Turn},
    },
    cookie::{CookieCheck, CookieKeys},
    counters::Traffic,
    policy::{Features, Tables},
    server_name,
    sources::StandingTable,
    verdict::Verdict,
};

/// The tables of sources, connections and names that a decision reads, apart from buckets.
pub trait SourceTables {
    /// The table of sources' standing.
    fn sources(&self) -> &impl StandingTable;

    /// The ban in force on the source, or on a range that contains it.
    fn banned_as<C: Clock>(&self, source: &Address, clock: &C) -> BanMatch;

    /// Counts traffic that the ban of this prefix drops.
    fn count_hit(&self, key: &BanKey, traffic: Traffic);

    /// Scores a packet in the sieves that are under pressure; returns whether a sieve drops it, and then sets the
    /// verdict. Not called under a policy without sieves.
    fn sift<T: Tables>(&self, tables: &T, packet: &ClassifiedPacket, verdict: &mut Verdict)
    -> bool;

    /// Returns whether the name with this keyed hash is cached. Not called under a policy without limits on new
    /// names.
    #[inline(always)]
    fn is_name_cached(&self, _features: &Features, _hash: u64, _now_ns: u64) -> bool {
        false
    }

    /// Enters the name with this keyed hash into the cached names. Not called under a policy without limits on new
    /// names.
    #[inline(always)]
    fn enter_name(&self, _features: &Features, _hash: u64, _now_ns: u64) {}

    /// Returns whether the address may belong to the host. Not called under a policy without answers.
    fn may_be_own(&self, address: &Address) -> bool;

    /// The keys that check DNS cookies. Not called under a policy that does not check them.
    fn cookie_keys(&self) -> CookieKeys;

    /// The number of open connections under a count id. Only the native pipeline calls it.
    fn connections(&self, _count_id: CountId) -> u64 {
        0
    }

    /// The number of clients in a limit's queue under a count id. Only the native pipeline calls it.
    fn waiting(&self, _settings: &QueueSettings, _count_id: CountId, _now_ns: u64) -> u64 {
        0
    }

    /// Returns whether a connecting client may proceed, by the queue of a limit; `room` is the key's number of free
    /// connections. Only the native pipeline calls it.
    fn turn(
        &self,
        _settings: &QueueSettings,
        _count_id: CountId,
        _opening_id: OpeningId,
        room: u64,
        _now_ns: u64,
    ) -> Turn {
        if room == 0 { Turn::Later } else { Turn::Now }
    }

    /// Returns whether a TCP segment belongs to a connection that the host itself opened. Not called under a policy
    /// that treats own and other connections alike.
    fn is_of_own_connection(&self, packet: &ClassifiedPacket) -> bool;

    /// The state of the server name of a TCP connection; `None`: untracked. Only the native pipeline calls it.
    fn flow(&self, _ends: &Ends) -> Option<server_name::FlowRecord> {
        None
    }

    /// The meaning of the server name of a QUIC flow; refreshes the flow's time. `None`: untracked or expired. Only the
    /// native pipeline calls it.
    fn quic_flow(&self, _ends: &Ends, _now_ns: u64) -> Option<server_name::Meaning> {
        None
    }

    /// The record of a connection's first bytes; `None`: evicted. Only the native pipeline calls it.
    fn first_bytes(&self, _ends: &Ends) -> Option<server_name::FirstBytes> {
        None
    }

    /// Calls [`server_name::FlowRecord::should_report`] of a tracked connection, with the sequence number of a
    /// segment's first byte and its length, and then [`server_name::FlowRecord::hold`]. Only the native pipeline
    /// calls it.
    fn hold(&self, _ends: &Ends, _segment: (u32, u32), _now_ns: u64) -> bool {
        false
    }

    /// Calls [`server_name::FlowRecord::follow`] of a tracked connection; `None`: its first bytes were evicted. Only the
    /// native pipeline calls it.
    fn follow(
        &self,
        _ends: &Ends,
        _segment: (u32, u32),
        _load: impl Fn(u32, u32) -> Option<u64>,
    ) -> Option<server_name::SegmentFate> {
        None
    }

    /// Marks a connection as in service. Only the native pipeline calls it.
    fn serve(&self, _ends: &Ends) {}

    /// Marks a connection as waiting for admission. Only the native pipeline calls it.
    fn make_wait(&self, _ends: &Ends) {}

    /// Counts a connection in service under a count id. Only the native pipeline calls it.
    fn count_connection(&self, _count_id: CountId) {}

    /// Counts the result of a query's cookie check.
    fn count_cookie(&self, check: CookieCheck);
}

/// Knows no source.
impl SourceTables for () {
    #[inline(always)]
    fn sources(&self) -> &impl StandingTable {
        self
    }

    #[inline(always)]
    fn banned_as<C: Clock>(&self, _source: &Address, _clock: &C) -> BanMatch {
        BanMatch::NOT
    }

    #[inline(always)]
    fn count_hit(&self, _key: &BanKey, _traffic: Traffic) {}

    #[inline(always)]
    fn sift<T: Tables>(
        &self,
        _tables: &T,
        _packet: &ClassifiedPacket,
        _verdict: &mut Verdict,
    ) -> bool {
        false
    }

    #[inline(always)]
    fn may_be_own(&self, _address: &Address) -> bool {
        false
    }

    #[inline(always)]
    fn cookie_keys(&self) -> CookieKeys {
        CookieKeys::NONE
    }

    #[inline(always)]
    fn is_of_own_connection(&self, _packet: &ClassifiedPacket) -> bool {
        false
    }

    #[inline(always)]
    fn count_cookie(&self, _check: CookieCheck) {}
}
