//! The stage of cookies: a query that limits refuse for their reserves may have a DNS cookie, which
//! proves its source.
//!
//! A valid cookie raises the source's standing as a handshake does: in a shortage, to fresh. A bot
//! gets a cookie for its own address by one query, so a cookie that counted for more would put it
//! ahead of all clients that completed a handshake.

use super::{DecisionSteps, Pipeline, Progress, Scratch, strictest::RESERVED};
use crate::{
    answer::{Exchange, Loops, SHORTEST_WITH_COOKIE, find_cookie},
    clock::Clock,
    cookie::CookieCheck,
    offender::OffenderTable,
    packet::{PROTOCOL_UDP, Transport},
    policy::Tables,
    source_tables::SourceTables,
    sources::StandingTable as _,
    standing::{Event, SourceId, Standing},
};

impl<Location> Scratch<Location> {
    /// Finds the DNS cookie of the packet in `exchange`; `None`: the packet does not fit into one.
    #[inline(always)]
    pub fn find_cookie<L: Loops>(&mut self, exchange: Option<&Exchange>, loops: &L) {
        self.cookie_check = match exchange {
            Some(exchange) => find_cookie(exchange, loops, &mut self.cookie),
            None => CookieCheck::Absent,
        };
    }
}

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Whether the current packet, refused by limits, may have a cookie that helps: it is a
    /// query of a source that is not yet fresh, and nothing but reserves refuses it.
    #[inline(always)]
    pub(super) fn may_have_cookie(&self, scratch: &Scratch<B::Location>) -> bool {
        let port = self.tables.features().cookie_port;
        let Scratch {
            packet, verdict, ..
        } = scratch;
        let facts = &packet.facts;
        // Read again: a comparison before the loop over the limits would make the verifier walk it
        // once for each outcome.
        let standing = self.tables.opaque(verdict.standing_number().into());
        port != 0
            && standing > Standing::Fresh as u64
            && scratch.strictest.strictness <= RESERVED
            && u64::from(facts.destination_port) == port
            && facts.protocol == PROTOCOL_UDP
            && matches!(facts.transport, Transport::Ports)
            && u64::from(facts.length) >= SHORTEST_WITH_COOKIE
    }

    /// Checks the cookie of the current packet. A valid cookie proves its source, which is
    /// decided on again; otherwise the packet is refused.
    #[inline(always)]
    pub(super) fn check_cookie(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        let features = self.tables.features();
        let Scratch {
            packet,
            cookie,
            cookie_check,
            verdict,
            ..
        } = scratch;
        let client = &packet.facts.source;
        let mut check = *cookie_check;
        if check == CookieCheck::Valid {
            check = cookie.check(client, &self.source_tables.cookie_keys(), packet.now);
        }
        self.source_tables.count_cookie(check);
        let before = verdict.standing_number();
        if check == CookieCheck::Valid {
            let source = SourceId::new(&features.standing, client);
            let sources = self.source_tables.sources();
            let standing = sources.record_event(features, source, Event::Cookie, packet.now);
            // Otherwise it would come back for ever.
            if (standing as u32) < before {
                verdict.set_standing(standing);
                verdict.decide_again(features);
                return Progress::Again;
            }
        }
        // LLVM may know its bounds where the verifier does not.
        let before = self.tables.opaque(before.into());
        let matched = verdict.matched & features.of_standing_number(before);
        let matched = self.tables.opaque(matched);
        if let Some(progress) = self.refuse_reserved(scratch, matched) {
            return progress;
        }
        scratch.verdict.matched = matched;
        Progress::Undecided
    }
}
