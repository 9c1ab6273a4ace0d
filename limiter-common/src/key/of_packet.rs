//! The key that a packet is charged to.

use super::{BucketKey, KeyKind};
use crate::{
    address::{Address, Family},
    limit::{IdFormat, KeyPart, LimitId, NameKind},
    packet::Facts,
    packet::NameMatch,
};

/// The most leading bits of a source that name a bucket together with a name. An IPv6 client has all addresses of a /64
/// (RFC 7421), so more bits would only give forgers more buckets.
pub const MOST_BITS_BESIDE_NAMES: u8 = 64;

/// The fields that may name the key of a packet's bucket. References, so that unused fields are never read.
#[derive(Clone, Copy, Debug)]
pub struct KeyFields<'a> {
    /// The facts of the packet's headers.
    pub facts: &'a Facts,
    /// The number of the subscriber that owns the source's prefix.
    pub subscriber: &'a u64,
    /// The policy's classification of the packet's question or server name; read only for limits that count by it.
    pub name_match: &'a NameMatch,
    /// The daemon's number for the interface that the packet came in on.
    pub interface: &'a u64,
}

/// The mapping from packets of one family to a bucket's key. It consists of numbers, because the kernel's verifier
/// would follow branches separately through all later code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct KeyMapping {
    kind: KeyKind,
    /// The number of the [`NameKind`] that also names the bucket; 0: none.
    name_kind: u8,
    reserved: [u8; 3],
    mask_high: u64,
    mask_low: u64,
}

impl KeyMapping {
    /// Derives the mapping from an id format. `key_part` names the keys unless the source does; `name_kind` is the
    /// part of the packet's question that names them too.
    pub(crate) const fn new(
        id_format: IdFormat,
        key_part: Option<KeyPart>,
        name_kind: Option<NameKind>,
        family: Family,
    ) -> Self {
        let all = Address {
            family,
            high: u64::MAX,
            low: u64::MAX,
        };
        let length = match id_format.prefix_length(family) {
            Some(length) => length,
            None => 0,
        };
        let length = match key_part {
            // A destination address is not masked.
            Some(KeyPart::Destination) => 128,
            _ => length,
        };
        let length = match name_kind {
            Some(_) if length > MOST_BITS_BESIDE_NAMES => MOST_BITS_BESIDE_NAMES,
            _ => length,
        };
        let Address { high, low, .. } = all.masked(length);
        let kind = match key_part {
            Some(KeyPart::Destination) => KeyKind::of_destination(family),
            Some(other) => KeyKind::of_number(other),
            None => KeyKind::of_range(family, length),
        };
        Self {
            kind: match (key_part, name_kind) {
                // The kind of such a number already includes the name.
                (Some(key_part), _) if key_part.name_kind().is_some() => kind,
                (_, Some(name_kind)) => kind.with_name(name_kind),
                (_, None) => kind,
            },
            name_kind: match name_kind {
                Some(name_kind) => name_kind as u8,
                None => 0,
            },
            reserved: [0; 3],
            mask_high: high,
            mask_low: low,
        }
    }

    /// The part of a packet's question that also names the bucket; `None`: no part does.
    #[inline(always)]
    pub(crate) const fn name_kind(&self) -> Option<NameKind> {
        NameKind::of_number(self.name_kind)
    }

    /// The bucket of a limit for a packet of this family. `key_part` is the number of the limit's [`KeyPart`], or 0.
    /// The kernel program reads it from a table that only the daemon writes; an unknown number counts as 0.
    #[inline(always)]
    pub(crate) const fn key(
        &self,
        limit: LimitId,
        key_part: u8,
        key_fields: &KeyFields<'_>,
    ) -> BucketKey {
        let Facts {
            source,
            destination_high,
            destination_low,
            ..
        } = key_fields.facts;
        let (high, low) = match KeyPart::of_number(key_part) {
            Some(KeyPart::Destination) => (*destination_high, *destination_low),
            _ => (source.high, source.low),
        };
        let high = match KeyPart::of_number(key_part) {
            Some(KeyPart::Subscriber) => *key_fields.subscriber,
            Some(KeyPart::Interface) => *key_fields.interface,
            Some(KeyPart::ServerName) => key_fields.name_match.zone,
            // The mask is 0 for a host's bucket, and for a bucket named by a question alone.
            Some(
                KeyPart::Host
                | KeyPart::Destination
                | KeyPart::Zone
                | KeyPart::Domain
                | KeyPart::Question,
            )
            | None => high & self.mask_high,
        };
        let low = match self.name_kind() {
            Some(NameKind::Zone) => key_fields.name_match.zone,
            Some(NameKind::Domain) => key_fields.name_match.domain,
            Some(NameKind::Question) => key_fields.name_match.question,
            None => low & self.mask_low,
        };
        BucketKey::new(limit, self.kind, high, low)
    }
}
