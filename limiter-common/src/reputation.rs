//! Knowledge of sources besides their budgets: bans, sieves, standing and cookies.

use crate::{
    address::Address,
    ban::{BanKey, BannedAs},
    clock::Clock,
    connection::{
        Ends, Place,
        queue::{Flow, QueueSettings, Turn},
    },
    cookie::{CookieCheck, CookieKeys},
    counters::Traffic,
    judged::Packet,
    policy::{Shape, Tables},
    server_name,
    sources::StandingStore,
    verdict::Verdict,
};

/// A store of reputations.
pub trait Reputation {
    /// Returns the store of what is known of sources.
    fn sources(&self) -> &impl StandingStore;

    /// Returns the ban of the source, or of a range that contains it, that holds now.
    fn banned_as<C: Clock>(&self, source: &Address, clock: &C) -> BannedAs;

    /// Counts traffic that the ban of this prefix drops.
    fn count_hit(&self, key: &BanKey, traffic: Traffic);

    /// Scores a packet in the sieves that are under pressure; returns whether one of them drops it,
    /// and then sets the verdict. Not called under a policy that uses no sieve.
    fn sift<T: Tables>(&self, tables: &T, packet: &Packet, verdict: &mut Verdict) -> bool;

    /// Returns whether the name with that keyed hash is known. Not called under a policy without limits on new
    /// names.
    #[inline(always)]
    fn knows_name(&self, _shape: &Shape, _hash: u64, _now_ns: u64) -> bool {
        false
    }

    /// Enters the name with that keyed hash among those that are known. Not called under a policy without limits
    /// on new names.
    #[inline(always)]
    fn enter_name(&self, _shape: &Shape, _hash: u64, _now_ns: u64) {}

    /// Returns whether the address may be one of the host's own. Not called under a policy that
    /// answers nothing.
    fn may_be_own(&self, address: &Address) -> bool;

    /// Returns what DNS cookies are checked with. Not called under a policy that checks none.
    fn cookie_keys(&self) -> CookieKeys;

    /// Returns how many connections are open at a place. Only the native pipeline calls it.
    fn connections(&self, _place: Place) -> u64 {
        0
    }

    /// Returns how many clients wait in the queue of a limit at a place. Only the native pipeline calls
    /// it.
    fn waiting(&self, _settings: &QueueSettings, _place: Place, _now_ns: u64) -> u64 {
        0
    }

    /// Returns whether it is the turn of a client that tries to connect, by the queue of a limit that has
    /// so much room for its owner. Only the native pipeline calls it.
    fn turn(
        &self,
        _settings: &QueueSettings,
        _place: Place,
        _flow: Flow,
        room: u64,
        _now_ns: u64,
    ) -> Turn {
        if room == 0 { Turn::Later } else { Turn::Now }
    }

    /// Returns whether the packet, a TCP segment, belongs to a connection that the host itself began.
    /// Not called under a policy that makes no difference between them and others.
    fn is_of_own_connection(&self, packet: &Packet) -> bool;

    /// Returns what is known of the name of the connection with these ends; `None`: nobody has noted it. Only
    /// the native pipeline calls it.
    fn flow(&self, _ends: &Ends) -> Option<server_name::Flow> {
        None
    }

    /// Returns what is known of the name of the QUIC flow with these ends, and notes that its client was heard
    /// of; `None`: nobody has noted it, or it is over. Only the native pipeline calls it.
    fn quic_flow(&self, _ends: &Ends, _now_ns: u64) -> Option<server_name::Meaning> {
        None
    }

    /// Returns the first bytes of a connection that were read; `None`: nobody knows them any more. Only the native
    /// pipeline calls it.
    fn first_bytes(&self, _ends: &Ends) -> Option<server_name::FirstBytes> {
        None
    }

    /// Calls [`server_name::Flow::tell`] of a noted connection, with the number of a segment's first byte and how many
    /// it has, and then [`server_name::Flow::hold`]. Only the native pipeline calls it.
    fn hold(&self, _ends: &Ends, _segment: (u32, u32), _now_ns: u64) -> bool {
        false
    }

    /// Calls [`server_name::Flow::follow`] of a noted connection; `None`: nobody knows its first bytes any more. Only the
    /// native pipeline calls it.
    fn follow(
        &self,
        _ends: &Ends,
        _segment: (u32, u32),
        _load: impl Fn(u32, u32) -> Option<u64>,
    ) -> Option<server_name::Followed> {
        None
    }

    /// Notes that a connection is in service. Only the native pipeline calls it.
    fn serve(&self, _ends: &Ends) {}

    /// Notes that a connection waits for its place. Only the native pipeline calls it.
    fn make_wait(&self, _ends: &Ends) {}

    /// Counts a connection that is in service at a place. Only the native pipeline calls it.
    fn count_connection(&self, _place: Place) {}

    /// Counts what a query said by its cookie.
    fn count_cookie(&self, check: CookieCheck);
}

/// Knows nothing of anybody.
impl Reputation for () {
    #[inline(always)]
    fn sources(&self) -> &impl StandingStore {
        self
    }

    #[inline(always)]
    fn banned_as<C: Clock>(&self, _source: &Address, _clock: &C) -> BannedAs {
        BannedAs::NOT
    }

    #[inline(always)]
    fn count_hit(&self, _key: &BanKey, _traffic: Traffic) {}

    #[inline(always)]
    fn sift<T: Tables>(&self, _tables: &T, _packet: &Packet, _verdict: &mut Verdict) -> bool {
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
    fn is_of_own_connection(&self, _packet: &Packet) -> bool {
        false
    }

    #[inline(always)]
    fn count_cookie(&self, _check: CookieCheck) {}
}
