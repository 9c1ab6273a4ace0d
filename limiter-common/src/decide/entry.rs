//! The entry of the pipeline: parses the frame, looks up its source, and finds the limits that
//! count it.

use super::{Scratch, Verdict};
use crate::{
    ban::BanMatch,
    clock::Clock,
    packet::{Facts, Headers},
    policy::{Class, Tables, classify, matching},
    reason::Reason,
    source_tables::SourceTables,
};

/// The result of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryOutcome {
    /// The verdict, without a stage.
    Decided(Verdict),
    /// The source is banned: the packet is dropped, and [`Stage::Banned`](super::Stage::Banned)
    /// counts it from scratch memory.
    Banned,
    /// The policy's stages decide, from scratch memory.
    Undecided,
}

/// Decides on a frame without a stage where possible.
#[inline(always)]
pub(super) fn enter<H, C, T, R, Location>(
    headers: &H,
    clock: &C,
    tables: &T,
    source_tables: &R,
    scratch: &mut Scratch<Location>,
) -> EntryOutcome
where
    H: Headers,
    C: Clock,
    T: Tables,
    R: SourceTables,
{
    let decided = |reason| EntryOutcome::Decided(Verdict::without_limits(reason));
    let mut facts = Facts::NONE;
    let mut parsed = headers.parse(&mut facts);
    if parsed.is_err()
        && let Some(again) = headers.parse_all(&mut scratch.packet.facts)
    {
        parsed = again;
        facts = scratch.packet.facts;
    }
    if let Err(reason) = parsed {
        return decided(reason);
    }
    let Some(class) = classify(tables, &facts.source) else {
        return decided(Reason::Unlimited);
    };
    match class.listed() {
        Class::EXCLUDED => return decided(Reason::Excluded),
        Class::BLOCKED => return decided(Reason::BlockedList),
        _ => {}
    }
    let banned_as = source_tables.banned_as(&facts.source, clock);
    if banned_as != BanMatch::NOT {
        scratch.meet_ban(&facts, banned_as);
        headers.count_packets(&mut scratch.packet.facts);
        return EntryOutcome::Banned;
    }
    let matched = matching(tables, &facts, class);
    if matched == 0 && tables.features().sieve_uses == 0 {
        return decided(Reason::Unlimited);
    }
    scratch.begin(facts, *class, clock.now(), matched);
    // The other limits count the packet or not depending on its source's standing, its connection's
    // state or name, or its question.
    let features = tables.features();
    let counting = matched
        & features.of_every_standing()
        & features.of_every_tcp_state()
        & features.of_every_question()
        & features.of_every_server_name();
    if class.listed() != 0 && scratch.verdict.block(tables, class.listed(), counting) {
        return EntryOutcome::Decided(scratch.verdict);
    }
    // Last, and into memory that the verifier does not track: otherwise it would walk the rest once
    // for each way to count.
    headers.count_packets(&mut scratch.packet.facts);
    EntryOutcome::Undecided
}
