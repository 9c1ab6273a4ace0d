//! Offenders: the sources with dropped packets, by limit or sieve, with a count. Also the names that these packets
//! asked for, if the limit counts by names.
//!
//! A bucket forgets a drop as soon as it has tokens again; this record remains. It decides on no packet, and a packet
//! that passes costs nothing here.
//!
//! Bans follow from the records, so drops are not sampled: one drop could then count as a hundred. (Within nanoseconds
//! another CPU may give an entry to another offender, with a drop too many.)

mod recording;
mod sampling;

pub use self::{
    recording::{RECORDS_BURST, RECORDS_PER_SECOND, RecordOutcome, Recording, RecordingCounts},
    sampling::Sampling,
};
use crate::{
    address::{Address, Family},
    classified_packet::ClassifiedPacket,
    limit::{KeyPart, LimitId},
    policy::Tables,
};

/// The mechanism that dropped packets. It separates sources over a limit from sources that are merely busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Dropper {
    /// A limit's budget was used up.
    Budget = 0,
    /// A sieve, of one limit or for all packets: the source was too busy under pressure.
    Sieve = 1,
}

/// Identifies an offender: the limit that dropped its packets, the mechanism, and the source address; or, in place of
/// the source, the name that the packets asked for.
///
/// The key has the whole address even if the limit's budget belongs to a range, subscriber or interface: the bucket
/// does not identify the source of the packets. Every byte is defined and there is no padding, because the kernel
/// hashes the key as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(8))]
pub struct OffenderKey {
    /// The limit's interned id; 0: a sieve for all packets.
    pub limit: u16,
    /// The address's IP version; of a name, the number of its [`KeyPart`].
    family: u16,
    /// The number of the [`Dropper`].
    by: u32,
    /// The address in network byte order, IPv4 in the first four bytes; for a name, its number, most significant byte
    /// first, and zeros.
    address: [[u8; 8]; 2],
}

const _: () = assert!(size_of::<OffenderKey>() == 24, "no padding in a hashed key");

impl OffenderKey {
    /// The key of a source with packets dropped by a limit, or by a sieve that the limit uses.
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

    /// The key of a packet's source. `limit_index` is the limit that dropped the packet, or the limit of the sieve;
    /// sieves for all packets have none. `None`: there is no such limit.
    #[inline(always)]
    pub fn of_packet<T: Tables>(
        tables: &T,
        packet: &ClassifiedPacket,
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

    /// The key of a name, given as a kind and a number, in packets dropped by a limit.
    #[must_use]
    #[inline(always)]
    pub const fn of_name(limit: LimitId, key_part: KeyPart, number: u64) -> Self {
        Self {
            limit: limit.0,
            family: key_part as u16,
            by: Dropper::Budget as u32,
            address: [number.to_be_bytes(), [0; 8]],
        }
    }

    /// The key of the name that a dropped packet asked for; `None`: the limit has no bucket for names, or a sieve
    /// dropped the packet.
    #[inline(always)]
    pub fn of_packet_name<T: Tables>(
        tables: &T,
        packet: &ClassifiedPacket,
        limit_index: u32,
        by: Dropper,
    ) -> Option<Self> {
        let features = tables.features();
        if features.by_name | features.by_server_name == 0 || by != Dropper::Budget {
            return None;
        }
        let limit = tables.limit(limit_index)?;
        let (key_part, number) = limit.name(&packet.name_match)?;
        Some(Self::of_name(LimitId(limit.id), key_part, number))
    }

    /// The kind and the number of the name; `None`: the offender is a source.
    #[must_use]
    #[inline(always)]
    pub fn name(&self) -> Option<(KeyPart, u64)> {
        let key_part = KeyPart::of_number(u8::try_from(self.family).ok()?)?;
        Some((key_part, u64::from_be_bytes(self.address[0])))
    }

    /// The mechanism that dropped the packets.
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
    /// The recorded drops of its packets. Some drops may be missing.
    pub drops: u64,
    /// The time of the first recorded drop, in nanoseconds of the decision's clock.
    pub first_drop_ns: u64,
    /// The time of the last recorded drop, in nanoseconds of the decision's clock.
    pub last_drop_ns: u64,
}

const _: () = assert!(size_of::<Offender>() == 3 * 8, "no padding");

impl Offender {
    /// The record of an offender after its first drop, at `now_ns`.
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

/// A table of offenders.
pub trait OffenderTable {
    /// Records a drop by the limit with that index, or by a sieve, if the allowance and the room suffice: the packet's
    /// source, and also the name it asked for if the limit has buckets for names. The sieve for all packets has no
    /// limit.
    fn record<T: Tables>(
        &self,
        tables: &T,
        packet: &ClassifiedPacket,
        limit_index: u32,
        by: Dropper,
    );
}

/// Records nothing.
impl OffenderTable for () {
    #[inline(always)]
    fn record<T: Tables>(
        &self,
        _tables: &T,
        _packet: &ClassifiedPacket,
        _limit_index: u32,
        _by: Dropper,
    ) {
    }
}

/// Records in the inner table; `None` records nothing.
impl<O: OffenderTable> OffenderTable for Option<O> {
    #[inline(always)]
    fn record<T: Tables>(
        &self,
        tables: &T,
        packet: &ClassifiedPacket,
        limit_index: u32,
        by: Dropper,
    ) {
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
        // An IPv6 address with the first four bytes of the IPv4 address.
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
        for key_part in [
            KeyPart::Zone,
            KeyPart::Domain,
            KeyPart::Question,
            KeyPart::ServerName,
        ] {
            let name = OffenderKey::of_name(LimitId(3), key_part, u64::MAX - 7);
            assert_eq!(name.name(), Some((key_part, u64::MAX - 7)));
            assert_eq!((name.limit, name.dropper()), (3, Dropper::Budget));
        }
        assert_ne!(key(3, v4), key(3, twin));
        assert_ne!(key(3, v4), key(4, v4));
    }
}
