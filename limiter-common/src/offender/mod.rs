//! Offenders: which sources were dropped, by which limit or sieve, and how often. Beside them, the names
//! that these asked for, if the limit counts by names.
//!
//! A bucket forgets a drop as soon as it has tokens again; this record remains. Nothing here
//! decides on a packet, and a packet that passes costs nothing here.
//!
//! Bans follow from the records, so drops are not sampled: one could count as a hundred. (Within
//! nanoseconds another CPU may give an entry to another offender, with a drop too many.)

mod recording;
mod sampling;

pub use self::{
    recording::{Counts, RECORDS_BURST, RECORDS_PER_SECOND, Recording, Stored},
    sampling::Sampling,
};
use crate::{
    address::{Address, Family},
    judged::Packet,
    limit::{LimitId, NamedBy},
    policy::Tables,
};

/// What dropped packets: it distinguishes sources over a limit from those that are merely busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Dropper {
    /// A limit's budget: it was used up.
    Budget = 0,
    /// A sieve that a limit uses, or one for all packets: the source was too busy under pressure.
    Sieve = 1,
}

/// Names one offender: the limit that dropped its packets, by what, and their source address. Or names what
/// those packets asked for.
///
/// It has the whole address even if the limit's budget belongs to a range, subscriber or interface:
/// the bucket does not tell which source sent the packets. Every byte is defined and there is no
/// padding: the kernel hashes the key as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(8))]
pub struct OffenderKey {
    /// The limit's interned id; 0: a sieve for all packets.
    pub limit: u16,
    /// The address's IP version; of a name, the number of its [`NamedBy`].
    family: u16,
    /// The number of the [`Dropper`].
    by: u32,
    /// The address in network byte order, IPv4 in the first four bytes; of a name, its number, most
    /// significant byte first, and zeros.
    address: [[u8; 8]; 2],
}

const _: () = assert!(size_of::<OffenderKey>() == 24, "no padding in a hashed key");

impl OffenderKey {
    /// Returns the key of a source whose packets a limit drops, or a sieve that the limit uses.
    #[must_use]
    #[inline(always)]
    pub const fn new(limit: LimitId, by: Dropper, source: &Address) -> Self {
        Self {
            limit: limit.0,
            family: source.family as u16,
            by: by as u32,
            address: [source.high.to_be_bytes(), source.low.to_be_bytes()],
        }
    }

    /// Returns the key under which the source is recorded of a packet that the limit with that index
    /// dropped, or a sieve, for that limit or for none; `None`: there is no such limit.
    #[inline(always)]
    pub fn of_packet<T: Tables>(
        tables: &T,
        packet: &Packet,
        limit_index: u32,
        by: Dropper,
    ) -> Option<Self> {
        let limit = match (tables.limit(limit_index), by) {
            (Some(limit), _) => LimitId(limit.id),
            (None, Dropper::Sieve) => LimitId(0),
            (None, Dropper::Budget) => return None,
        };
        Some(Self::new(limit, by, &packet.facts.source))
    }

    /// Returns the key of a name of a kind with that number, of the packets that a limit drops.
    #[must_use]
    #[inline(always)]
    pub const fn of_name(limit: LimitId, named_by: NamedBy, number: u64) -> Self {
        Self {
            limit: limit.0,
            family: named_by as u16,
            by: Dropper::Budget as u32,
            address: [number.to_be_bytes(), [0; 8]],
        }
    }

    /// Returns the key under which is recorded what the packet asked for that the limit with that index
    /// dropped; `None`: the limit has no bucket for that, or a sieve has dropped the packet.
    #[inline(always)]
    pub fn of_asked<T: Tables>(
        tables: &T,
        packet: &Packet,
        limit_index: u32,
        by: Dropper,
    ) -> Option<Self> {
        let shape = tables.shape();
        if shape.by_name | shape.by_server_name == 0 || by != Dropper::Budget {
            return None;
        }
        let limit = tables.limit(limit_index)?;
        let (named_by, number) = limit.name(&packet.asked)?;
        Some(Self::of_name(LimitId(limit.id), named_by, number))
    }

    /// Returns what names the packets' owner, and the number of the name; `None`: it is a source.
    #[must_use]
    #[inline(always)]
    pub fn name(&self) -> Option<(NamedBy, u64)> {
        let named_by = NamedBy::of_number(u8::try_from(self.family).ok()?)?;
        Some((named_by, u64::from_be_bytes(self.address[0])))
    }

    /// Returns what dropped the packets.
    #[must_use]
    pub const fn dropper(&self) -> Dropper {
        if self.by == Dropper::Sieve as u32 {
            Dropper::Sieve
        } else {
            Dropper::Budget
        }
    }

    /// Returns the source address.
    #[must_use]
    pub const fn address(&self) -> Address {
        let [high, low] = self.address;
        if self.family == Family::V4 as u16 {
            Address::v4([high[0], high[1], high[2], high[3]])
        } else {
            Address::v6(high, low)
        }
    }
}

/// The record of one offender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Offender {
    /// The recorded drops of its packets, at most as many as there were.
    pub drops: u64,
    /// The time of the first of them, in nanoseconds of the decision's clock.
    pub first_drop_ns: u64,
    /// The time of the last of them, in nanoseconds of the decision's clock.
    pub last_drop_ns: u64,
}

const _: () = assert!(size_of::<Offender>() == 3 * 8, "no padding");

impl Offender {
    /// Returns the record of an offender whose first packet is dropped at `now_ns`.
    #[must_use]
    #[inline(always)]
    pub const fn new(now_ns: u64) -> Self {
        Self {
            drops: 1,
            first_drop_ns: now_ns,
            last_drop_ns: now_ns,
        }
    }
}

/// A store of offenders.
pub trait OffenderStore {
    /// Records that the limit with that index, or a sieve, dropped the packet, if the records'
    /// allowance and the room suffice: its source, and what it asked for if the limit has a bucket for
    /// that. A sieve may drop for no limit.
    fn record<T: Tables>(&self, tables: &T, packet: &Packet, limit_index: u32, by: Dropper);
}

/// Records nobody.
impl OffenderStore for () {
    #[inline(always)]
    fn record<T: Tables>(&self, _tables: &T, _packet: &Packet, _limit_index: u32, _by: Dropper) {}
}

/// Records somebody or, with `None`, nobody.
impl<O: OffenderStore> OffenderStore for Option<O> {
    #[inline(always)]
    fn record<T: Tables>(&self, tables: &T, packet: &Packet, limit_index: u32, by: Dropper) {
        if let Some(offenders) = self {
            offenders.record(tables, packet, limit_index, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_whose_they_are() {
        let v4 = Address::v4([192, 0, 2, 77]);
        let v6 = Address::v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6, 7, 8]);
        // An IPv6 address whose first four bytes are those of the IPv4 address.
        let twin = Address::v6([192, 0, 2, 77, 0, 0, 0, 0], [0; 8]);
        for address in [v4, v6, twin] {
            for by in [Dropper::Budget, Dropper::Sieve] {
                let key = OffenderKey::new(LimitId(3), by, &address);
                assert_eq!((key.limit, key.dropper(), key.address()), (3, by, address));
            }
        }
        let key = |limit, address| OffenderKey::new(LimitId(limit), Dropper::Budget, &address);
        assert_ne!(
            key(3, v4),
            OffenderKey::new(LimitId(3), Dropper::Sieve, &v4)
        );
        assert_eq!(key(3, v4).name(), None);
        assert_eq!(key(3, v6).name(), None);
        for named_by in [
            NamedBy::Zone,
            NamedBy::Domain,
            NamedBy::Question,
            NamedBy::ServerName,
        ] {
            let name = OffenderKey::of_name(LimitId(3), named_by, u64::MAX - 7);
            assert_eq!(name.name(), Some((named_by, u64::MAX - 7)));
            assert_eq!((name.limit, name.dropper()), (3, Dropper::Budget));
        }
        assert_ne!(key(3, v4), key(3, twin));
        assert_ne!(key(3, v4), key(4, v4));
    }
}
