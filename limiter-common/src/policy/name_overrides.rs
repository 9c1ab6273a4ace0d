//! Overrides by name: of a zone, a domain, a question or a server name, for all sources or for one.

use super::{Class, Tables, lookup::search_rarely, matching::set_of_number};
use crate::{address::Address, packet::NameMatch};

/// Records which limits have an override for the name of a packet from `source`. The look-up finds an
/// override for a source and a name before one for the name, so one look-up suffices.
#[inline(always)]
pub(crate) fn record_overrides<T: Tables>(
    tables: &T,
    source: &Address,
    name_match: &mut NameMatch,
) {
    if tables.features().overridden_by_name == 0 {
        return;
    }
    name_match.overridden = tables.opaque(0);
    if name_match.overrides == 0 {
        return;
    }
    // The verifier would walk the rest once for each family.
    #[expect(clippy::cast_possible_truncation, reason = "it is below two")]
    let family = tables.opaque(source.family.index() as u64) as u32 & 1;
    let start = tables.child(name_match.overrides.wrapping_sub(1).wrapping_add(family));
    if let Some(start) = start
        && let Some(class) = tables.class(search_rarely(tables, *start, source.high, source.low))
    {
        name_match.overridden = class.overridden;
        name_match.first_override = class.first_override;
    }
}

/// Returns the limits of `matched` that have a rate for a packet from a source of `class`: leaves
/// out limits that have rates only in overrides, none of them for this packet.
#[inline(always)]
pub(crate) fn with_rates<T: Tables>(
    tables: &T,
    class: &Class,
    name_match: &NameMatch,
    matched: u64,
) -> u64 {
    let only_overridden = tables.features().only_overridden;
    if only_overridden == 0 {
        return matched;
    }
    // A limit needs no rate for packets that it blocks.
    let blocking = match class.listed() {
        0 => 0,
        listed => set_of_number(tables, listed),
    };
    matched & (!only_overridden | name_match.overridden | class.overridden | blocking)
}

/// Returns the index of a limit's parameters for a packet from a source of `class`: an override for
/// its name goes before an override for its source.
#[must_use]
#[inline(always)]
pub fn rate_index<T: Tables>(
    tables: &T,
    class: &Class,
    name_match: &NameMatch,
    limit_index: u32,
) -> u32 {
    let bit = 1u64 << (limit_index & 63);
    // For other limits the packet's name may not be recorded.
    if tables.features().overridden_by_name & bit != 0 && name_match.overridden & bit != 0 {
        let before = (name_match.overridden & (bit - 1)).count_ones();
        return name_match.first_override.wrapping_add(before);
    }
    class.rate_index(limit_index)
}

/// Returns the name's result for a packet from a source of `class`, with its overrides and without
/// the limits that have no rate for it.
#[cfg(not(target_arch = "bpf"))]
#[must_use]
pub fn with_overrides<T: Tables>(
    tables: &T,
    source: &Address,
    class: &Class,
    name_match: &NameMatch,
) -> NameMatch {
    let mut name_match = *name_match;
    record_overrides(tables, source, &mut name_match);
    name_match.limits = with_rates(tables, class, &name_match, name_match.limits);
    name_match
}
