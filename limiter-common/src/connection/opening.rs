//! A connection that opens: the places where it is counted, and the limits that have no room for it.

use super::{Ends, Place, Places};
use crate::{
    judged::Packet,
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
    asked: &'a NameMatch,
    /// The limits that count it.
    matched: u64,
    /// The number of the source's standing.
    standing: u32,
}

impl<'a> Opening<'a> {
    /// Makes the opening for a packet; the verdict so far has the matching limits and the source's standing.
    #[must_use]
    #[inline(always)]
    pub const fn of_packet(packet: &'a Packet, verdict: &Verdict) -> Self {
        Self {
            facts: &packet.facts,
            class: &packet.class,
            asked: &packet.asked,
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
    /// open connections at a place.
    #[inline(always)]
    pub fn full<T: Tables>(&self, tables: &T, open: impl Fn(Place) -> u64) -> u64 {
        let shape = tables.shape();
        // Opaque from the start, so that the verifier walks each round once.
        let mut full = tables.opaque(0);
        let mut rest = shape.connections;
        for _ in 0..MOST_LIMITS {
            if rest == 0 {
                break;
            }
            let limit_index = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            if self.matched >> limit_index & 1 == 0 {
                continue;
            }
            let place = self.place_at(tables, limit_index);
            let most = self.most_at(tables, limit_index);
            let (Some(place), Some(most)) = (place, most) else {
                continue;
            };
            let is_full = u64::from(open(place) >= most);
            full |= tables.opaque(is_full) << limit_index;
        }
        full
    }

    /// Returns the place where the limit at an index counts the connections of its owner.
    #[inline(always)]
    pub fn place_at<T: Tables>(&self, tables: &T, limit_index: u32) -> Option<Place> {
        let limit = tables.limit(limit_index)?;
        let family = (tables.opaque(self.facts.source.family.index() as u64) & 1) as usize;
        let hash_key = &tables.shape().hash_key;
        let subscriber = &self.class.subscriber;
        Some(Place::of_packet(
            hash_key, limit, self.facts, subscriber, self.asked, family,
        ))
    }

    /// Returns the number of open connections of that owner below which this source may open one more. The
    /// rest is reserved for other sources.
    #[inline(always)]
    pub(super) fn most_at<T: Tables>(&self, tables: &T, limit_index: u32) -> Option<u64> {
        let parameters = parameters_of(tables, self.class, limit_index)?;
        let mut most = parameters.connections();
        if tables.shape().reserving_places >> limit_index & 1 != 0 {
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
/// connection of this connection's peer, treated as unknown. `open` returns the number of open connections at
/// a place.
#[inline(always)]
pub fn full_for<T: Tables>(tables: &T, ends: &Ends, open: impl Fn(Place) -> u64) -> u64 {
    let facts = &ends.facts();
    let Some(class) = counted_class(tables, facts) else {
        return 0;
    };
    let opening = Opening {
        facts,
        class,
        asked: &NameMatch::NOTHING,
        matched: matching(tables, facts, class)
            & !tables.shape().observing
            & tables.shape().of_every_server_name(),
        standing: Standing::Unknown as u32,
    };
    opening.full(tables, open)
}

/// Fills in the places where a connection is to be counted; `asked` is the policy's result for its server
/// name. All `places` must be empty.
#[inline(always)]
pub fn find_places<T: Tables>(tables: &T, ends: &Ends, asked: &NameMatch, places: &mut Places) {
    let facts = ends.facts();
    let shape = tables.shape();
    let Some(class) = counted_class(tables, &facts) else {
        return;
    };
    // Opaque, so that the verifier walks the rest once for all names.
    let named = tables.opaque(asked.limits) | shape.of_every_server_name();
    let matched = matching(tables, &facts, class) & named;
    let family = (tables.opaque(facts.source.family.index() as u64) & 1) as usize;
    let mut rest = shape.connections;
    for (place, earlier) in places.0.iter_mut().zip(&shape.earlier_of_group) {
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
        let found = Place::of_packet(&shape.hash_key, limit, &facts, subscriber, asked, family);
        // Not branches: the verifier would walk each set of limits.
        let is_matched = tables.opaque(matched >> limit_index & 1);
        let is_first = tables.opaque(u64::from(matched & earlier == 0));
        *place = found.0 & 0u64.wrapping_sub(is_matched & is_first);
    }
}
