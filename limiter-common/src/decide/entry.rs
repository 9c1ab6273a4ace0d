//! The entry of the pipeline: the facts of the frame, what is known of its source, and which limits
//! count it.

use super::{Verdict, Workspace};
use crate::{
    ban::BannedAs,
    clock::Clock,
    packet::{Facts, Headers},
    policy::{Class, Tables, classify, matching},
    reason::Reason,
    reputation::Reputation,
};

/// What the entry found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// The verdict, which took no stage.
    Decided(Verdict),
    /// The source is banned: the packet is dropped, and [`Stage::Banned`](super::Stage::Banned)
    /// counts it. The workspace has what it needs.
    Banned,
    /// The stages on the policy's way decide. The workspace has all that they need.
    Undecided,
}

/// Decides on a frame, if that takes no stage.
#[inline(always)]
pub(super) fn enter<H, C, T, R, Location>(
    headers: &H,
    clock: &C,
    tables: &T,
    reputation: &R,
    workspace: &mut Workspace<Location>,
) -> Entered
where
    H: Headers,
    C: Clock,
    T: Tables,
    R: Reputation,
{
    let decided = |reason| Entered::Decided(Verdict::without_limits(reason));
    let mut facts = Facts::NONE;
    let mut parsed = headers.parse(&mut facts);
    if parsed.is_err()
        && let Some(again) = headers.parse_all(&mut workspace.packet.facts)
    {
        parsed = again;
        facts = workspace.packet.facts;
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
    let banned_as = reputation.banned_as(&facts.source, clock);
    if banned_as != BannedAs::NOT {
        workspace.meet_ban(&facts, banned_as);
        headers.count_packets(&mut workspace.packet.facts);
        return Entered::Banned;
    }
    let matched = matching(tables, &facts, class);
    if matched == 0 && tables.shape().sieve_uses == 0 {
        return decided(Reason::Unlimited);
    }
    workspace.begin(facts, *class, clock.now(), matched);
    // The other limits may count the packet or not, by the standing of its source, the state of its
    // connection, its question or its connection's name.
    let shape = tables.shape();
    let counting = matched
        & shape.of_every_standing()
        & shape.of_every_tcp_state()
        & shape.of_every_question()
        & shape.of_every_server_name();
    if class.listed() != 0 && workspace.verdict.block(tables, class.listed(), counting) {
        return Entered::Decided(workspace.verdict);
    }
    // Last, and in memory that the verifier does not track: it would walk the rest once for each way to
    // count.
    headers.count_packets(&mut workspace.packet.facts);
    Entered::Undecided
}
