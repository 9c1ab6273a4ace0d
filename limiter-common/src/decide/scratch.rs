//! Scratch memory for the current packet, shared by all stages.

use super::{Charge, strictest::StrictestRefusal};
use crate::{
    ban::BanMatch,
    bucket::Search,
    classified_packet::ClassifiedPacket,
    connection::Refusals,
    cookie::{CookieCheck, DnsCookie},
    counters::Traffic,
    limit::MAX_LIMITS,
    packet::NameMatch,
    packet::{Facts, TcpState},
    policy::Class,
    reason::Reason,
    standing::{HashedSource, VisitCount},
    verdict::Verdict,
};

/// Memory for the current packet and the charge of each limit for it.
///
/// It is too large for a kernel program's stack, and not worth clearing for each packet: a caller
/// keeps one for its tables, and only [`Self::visits`], [`Self::slips`] and the hashes in the search
/// are read before they are written for the same packet.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Scratch<Location> {
    /// The decision so far.
    pub(crate) verdict: Verdict,
    /// The packet.
    pub(crate) packet: ClassifiedPacket,
    pub(crate) search: Search,
    pub(crate) strictest: StrictestRefusal,
    /// The indices of the limits that have refused the packet.
    pub(crate) refused: u64,
    /// The indices of the observing limits that would drop the packet independent of their buckets;
    /// only in the stage that charges them.
    pub(crate) blocking: u64,
    /// The limits on connections that refuse the packet's new connection; only in the stage that
    /// asks.
    pub(crate) refusals: Refusals,
    /// The ban that drops the packet; only in the stage that counts it.
    pub(crate) banned_as: BanMatch,
    /// Whether the packet is dropped because its connection's name is not read yet; only in the
    /// stage that asks.
    pub(crate) is_held: bool,
    /// Whether the packet is dropped because its client has sent different bytes at one position of
    /// its connection; only in the stage that asks.
    pub(crate) contradicts: bool,
    /// Whether the packet's connection waits for admission, so that sieves have seen it; only if it
    /// asks for admission.
    pub(crate) waits: bool,
    /// The state of the packet's connection; only under a policy that asks for it.
    pub(crate) tcp_state: TcpState,
    /// The indices of the limits checked in the stage of standing that let the packet pass; only
    /// under a policy that reserves.
    pub(crate) passing: u64,
    /// The packet's source; only if its standing is looked up.
    pub(crate) source: HashedSource,
    /// The visits so far, for sampling.
    pub(crate) visits: VisitCount,
    /// The packets that each limit has refused since it last sent a truncated answer.
    pub(crate) slips: [u64; MAX_LIMITS as usize],
    /// Why the packet passes if it is charged in place of its answer; `None`: it is answered.
    pub(crate) passes_by: Option<Reason>,
    /// The result of checking the packet's DNS cookie, as far as possible without the secrets.
    pub(crate) cookie_check: CookieCheck,
    /// The cookie to check, if any.
    pub(crate) cookie: DnsCookie,
    pub(crate) charges: [Charge<Location>; MAX_LIMITS as usize],
}

impl<Location: Copy + Default> Default for Scratch<Location> {
    fn default() -> Self {
        Self {
            packet: ClassifiedPacket {
                facts: Facts::NONE,
                class: Class::default(),
                now: 0,
                interface: 0,
                name_match: NameMatch::NOTHING,
            },
            verdict: Verdict::without_limits(Reason::Unlimited),
            strictest: StrictestRefusal::NONE,
            refused: 0,
            blocking: 0,
            refusals: Refusals::default(),
            banned_as: BanMatch::NOT,
            is_held: false,
            contradicts: false,
            waits: false,
            tcp_state: TcpState::None,
            passing: 0,
            source: HashedSource::NONE,
            visits: VisitCount::default(),
            slips: [0; MAX_LIMITS as usize],
            search: Search::SINGLE,
            passes_by: None,
            cookie_check: CookieCheck::Absent,
            cookie: DnsCookie::default(),
            charges: [Charge::default(); MAX_LIMITS as usize],
        }
    }
}

impl<Location> Scratch<Location> {
    /// Starts on a packet that the limits in `matched` count.
    #[inline(always)]
    pub(crate) const fn begin(&mut self, facts: Facts, class: Class, now: u64, matched: u64) {
        // A stage that needs the packet's name writes it into `name_match`.
        self.packet.facts = facts;
        self.packet.class = class;
        self.packet.now = now;
        self.verdict = Verdict {
            matched,
            ..Verdict::without_limits(if matched == 0 {
                Reason::Unlimited
            } else {
                Reason::WithinLimits
            })
        };
        // Not set as a whole: in BPF that would be a call to a loop over bytes.
        self.strictest.strictness = 0;
    }

    /// Sets the daemon's number for the interface that the frame came in on, before all stages.
    #[inline(always)]
    pub const fn come_in_on(&mut self, interface: u32) {
        self.packet.interface = interface as u64;
    }

    /// The decision so far.
    #[must_use]
    #[inline(always)]
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The decision so far, for changes.
    #[must_use]
    #[inline(always)]
    pub const fn verdict_mut(&mut self) -> &mut Verdict {
        &mut self.verdict
    }

    /// The packets and bytes that the frame carries.
    #[must_use]
    #[inline(always)]
    pub const fn traffic(&self) -> Traffic {
        self.packet.facts.traffic()
    }

    #[inline(always)]
    pub(crate) const fn charge(&mut self, limit_index: u32) -> &mut Charge<Location> {
        &mut self.charges[(limit_index % MAX_LIMITS) as usize]
    }
}
