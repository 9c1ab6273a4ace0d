//! A connection that opens: the count ids under which it is counted, and the limits that have no room for it.

use super::{CountId, CountIds, Ends};
use crate::{
    classified_packet::ClassifiedPacket,
    limit::MAX_CONNECTION_LIMITS as MOST_LIMITS,
    packet::{Facts, NameMatch},
    policy::{Class, Tables, classify, matching, parameters_of},
    standing::Standing,
    verdict::Verdict,
};

/// The inputs of a decision on a new connection.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The facts of its first packet.
    facts: &'a Facts,
    /// The class of its source.
    class: &'a Class,
    /// The limits on its server name, and the name's number.
    name_match: &'a NameMatch,
    /// The limits that count it.
    matched: u64,
    /// The number of the source's standing.
    standing: u32,
}

impl<'a> Opening<'a> {
    /// Makes the opening for a packet; the verdict so far has the matching limits and the source's standing.
    #[must_use]
    #[inline(always)]
    pub const fn of_packet(packet: &'a ClassifiedPacket, verdict: &Verdict) -> Self {
        Self {
            facts: &packet.facts,
            class: &packet.class,
            name_match: &packet.name_match,
            matched: verdict.matched,
            standing: verdict.standing_number(),
        }
    }

    #[inline(always)]
    pub(super) const fn matched(&self) -> u64 {
        self.matched
    }

    /// Whether its source is known, so not forged.
    #[inline(always)]
    pub(super) const fn is_of_known_source(&self) -> bool {
        self.standing <= Standing::Fresh as u32
    }

    /// Returns the limits on connections that count it and have no room for it. `open` returns the number of
    /// open connections under a count id.
    #[inline(always)]
    pub fn full<T: Tables>(&self, tables: &T, open: impl Fn(CountId) -> u64) -> u64 {
        let features = tables.features();
        // Opaque from the start, so that the verifier walks each round once.
        let mut full = tables.opaque(0);
        let mut rest = features.connections;
        for _ in 0..MOST_LIMITS {
            if rest == 0 {
                break;
            }
            let limit_index = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            if self.matched >> limit_index & 1 == 0 {
                continue;
            }
            let count_id = self.count_id_at(tables, limit_index);
            let most = self.most_at(tables, limit_index);
            let (Some(count_id), Some(most)) = (count_id, most) else {
                continue;
            };
            let is_full = u64::from(open(count_id) >= most);
            full |= tables.opaque(is_full) << limit_index;
        }
        full
    }

    /// Returns the count id under which the limit at an index counts the connections of its key.
    #[inline(always)]
    pub fn count_id_at<T: Tables>(&self, tables: &T, limit_index: u32) -> Option<CountId> {
        let limit = tables.limit(limit_index)?;
        let family = (tables.opaque(self.facts.source.family.index() as u64) & 1) as usize;
        let hash_key = &tables.features().hash_key;
        let subscriber = &self.class.subscriber;
        Some(CountId::of_packet(
            hash_key,
            limit,
            self.facts,
            subscriber,
            self.name_match,
            family,
        ))
    }

    /// Returns the number of open connections of that key below which this source may open one more. The
    /// rest is reserved for other sources.
    #[inline(always)]
    pub(super) fn most_at<T: Tables>(&self, tables: &T, limit_index: u32) -> Option<u64> {
        let parameters = parameters_of(tables, self.class, limit_index)?;
        let mut most = parameters.connections();
        if tables.features().reserving_connections >> limit_index & 1 != 0 {
            let reserves = tables.reserves(self.class.rate_index(limit_index))?;
            most = most.saturating_sub(reserves.from_number(self.standing));
        }
        // Opaque, so that the verifier walks the rest once, not once for each way to find it.
        Some(tables.opaque(most))
    }
}

/// Returns the class of the source of a packet that opens a connection, or `None` if no limit counts the
/// source.
#[inline(always)]
pub(super) fn counted_class<'t, T: Tables>(tables: &'t T, facts: &Facts) -> Option<&'t Class> {
    classify(tables, &facts.source).filter(|class| class.listed() != Class::EXCLUDED)
}

/// Returns the limits that count packets of a connection's peer, as far as its ends decide.
#[inline(always)]
pub fn counting<T: Tables>(tables: &T, ends: &Ends) -> u64 {
    let facts = &ends.facts();
    match counted_class(tables, facts) {
        Some(class) => matching(tables, facts, class),
        None => 0,
    }
}

/// Returns the enforcing limits on connections, independent of server names, that have no room for another
/// connection of this connection's peer, treated as unknown. `open` returns the number of open connections
/// under a count id.
#[inline(always)]
pub fn full_for<T: Tables>(tables: &T, ends: &Ends, open: impl Fn(CountId) -> u64) -> u64 {
    let facts = &ends.facts();
    let Some(class) = counted_class(tables, facts) else {
        return 0;
    };
    let opening = Opening {
        facts,
        class,
        name_match: &NameMatch::NOTHING,
        matched: matching(tables, facts, class)
            & !tables.features().observing
            & tables.features().of_every_server_name(),
        standing: Standing::Unknown as u32,
    };
    opening.full(tables, open)
}

/// Fills in the count ids under which a connection is to be counted; `name_match` is the policy's result for
/// its server name. All `count_ids` must be empty.
#[inline(always)]
pub fn find_count_ids<T: Tables>(
    tables: &T,
    ends: &Ends,
    name_match: &NameMatch,
    count_ids: &mut CountIds,
) {
    let facts = ends.facts();
    let features = tables.features();
    let Some(class) = counted_class(tables, &facts) else {
        return;
    };
    // Opaque, so that the verifier walks the rest once for all names.
    let named = tables.opaque(name_match.limits) | features.of_every_server_name();
    let matched = matching(tables, &facts, class) & named;
    let family = (tables.opaque(facts.source.family.index() as u64) & 1) as usize;
    let mut rest = features.connections;
    for (count_id, earlier) in count_ids.0.iter_mut().zip(&features.earlier_of_group) {
        if rest == 0 {
            break;
        }
        let limit_index = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        let Some(limit) = tables.limit(limit_index) else {
            // The policy compiler rules this out.
            return;
        };
        let subscriber = &class.subscriber;
        let found = CountId::of_packet(
            &features.hash_key,
            limit,
            &facts,
            subscriber,
            name_match,
            family,
        );
        // Not branches: the verifier would walk each set of limits.
        let is_matched = tables.opaque(matched >> limit_index & 1);
        let is_first = tables.opaque(u64::from(matched & earlier == 0));
        *count_id = found.0 & 0u64.wrapping_sub(is_matched & is_first);
    }
}
