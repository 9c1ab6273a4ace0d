//! What one limit wants of one packet.

use crate::{
    bucket::Search,
    decide::{Steps, Strictest, Verdict},
    limit::MAX_LIMITS,
    owner::{BucketKey, Known, OwnerKind},
    packet::Facts,
    policy::{Class, Tables, parameters},
    reason::Reason,
    strategy::{Budget, Spend},
};

/// A packet to be decided on: its facts, the class of its source, and the time.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// What its headers say.
    pub facts: Facts,
    /// The class of its source.
    pub class: Class,
    /// When it arrived, in nanoseconds.
    pub now: u64,
}

impl Packet {
    /// What may name the owners of the buckets that it is charged to, where it came in on the
    /// interface of that number.
    #[inline(always)]
    const fn known<'a>(&'a self, interface: &'a u32) -> Known<'a> {
        Known {
            facts: &self.facts,
            subscriber: &self.class.subscriber,
            interface,
        }
    }
}

/// What one limit wants of one packet: which bucket is to change, and how.
///
/// Plain numbers, so that the kernel program can hand it to functions of its own.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Charge<Found> {
    /// The bucket, in the words of its store.
    pub found: Found,
    /// What it is to lose.
    pub spend: Spend,
    /// The state that it was seen in.
    pub seen: u64,
    /// When the packet arrived, in nanoseconds.
    pub now_ns: u64,
    /// Of a window that was changed the state that it was given; before, it was in the one seen.
    pub changed: u64,
    /// Of a moving window the number of the unit that its stamps count in.
    pub stamp_unit: u32,
    /// Always 0.
    pub reserved: u32,
}

impl<Found: Default> Charge<Found> {
    /// To no bucket.
    fn none() -> Self {
        Self {
            found: Found::default(),
            spend: Spend::NONE,
            seen: 0,
            now_ns: 0,
            changed: 0,
            stamp_unit: 0,
            reserved: 0,
        }
    }
}

/// Room for what each limit of a policy wants of the packet at hand.
///
/// Too large for a kernel program's stack, and not worth clearing for each packet: whoever
/// decides keeps one, and nothing in it is read that was not written for the same packet.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Workspace<Found> {
    /// What has been decided so far.
    pub(crate) verdict: Verdict,
    /// The packet.
    pub(crate) packet: Packet,
    pub(crate) search: Search,
    pub(crate) strictest: Strictest,
    /// The slots of the limits that have refused it.
    pub(crate) refused: u64,
    pub(crate) charges: [Charge<Found>; MAX_LIMITS as usize],
    /// How a window is changed.
    pub(crate) steps: Steps<Found>,
}

impl<Found: Copy + Default> Default for Workspace<Found> {
    fn default() -> Self {
        Self {
            packet: Packet {
                facts: Facts::NONE,
                class: Class::default(),
                now: 0,
            },
            verdict: Verdict::without_limits(Reason::Unlimited),
            strictest: Strictest::NONE,
            refused: 0,
            search: Search::SINGLE,
            charges: [Charge::none(); MAX_LIMITS as usize],
            steps: Steps {
                stamp: Charge::none(),
                swap: Charge::none(),
                lacks_stamp: 0,
                reserved: 0,
            },
        }
    }
}

impl<Found> Workspace<Found> {
    /// Begins with a packet that the limits in `matched` count.
    #[inline(always)]
    pub(crate) const fn begin(&mut self, packet: Packet, matched: u64) {
        self.packet = packet;
        self.verdict = Verdict {
            matched,
            ..Verdict::without_limits(if matched == 0 {
                Reason::Unlimited
            } else {
                Reason::WithinLimits
            })
        };
        // Not as a whole: in BPF that would be a call to a loop over bytes.
        self.strictest.strictness = 0;
        self.search.hashed = OwnerKind::NONE;
    }

    /// What has been decided so far.
    #[must_use]
    #[inline(always)]
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The length in bytes of the packet's frame, from the Ethernet header on.
    #[must_use]
    #[inline(always)]
    pub const fn frame_length(&self) -> u64 {
        self.packet.facts.length
    }

    /// The charge of the limit in a slot.
    #[inline(always)]
    pub const fn charge(&mut self, slot: u32) -> &mut Charge<Found> {
        &mut self.charges[(slot % MAX_LIMITS) as usize]
    }

    /// The same, and the steps to change its bucket by.
    #[inline(always)]
    pub(crate) const fn charge_and_steps(
        &mut self,
        slot: u32,
    ) -> (&mut Charge<Found>, &mut Steps<Found>) {
        let Self { charges, steps, .. } = self;
        (&mut charges[(slot % MAX_LIMITS) as usize], steps)
    }
}

/// What one limit that counts a packet has to do with it.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// The bucket.
    pub key: BucketKey,
    /// The bucket's parameters.
    pub budget: &'a Budget,
    /// The tokens that the packet costs.
    pub cost: u64,
}

/// The account of a packet with the limit in `slot`, which counts it.
#[inline(always)]
pub fn account<'a, T: Tables>(tables: &'a T, packet: &Packet, slot: u32) -> Option<Account<'a>> {
    let limit = tables.limit(slot)?;
    // Known, it would be one walk of the verifier for each family.
    let family = (tables.opaque(packet.facts.source.family.index() as u64) & 1) as usize;
    let budget = parameters(tables, &packet.class, slot)?;
    Some(Account {
        key: limit.bucket(&packet.known(&tables.shape().interface), family),
        budget,
        cost: limit.cost_of(&packet.facts),
    })
}
