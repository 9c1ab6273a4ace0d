//! The decision: a pipeline of stages, from a frame to its verdict.
//!
//! ```text
//! entry: parse, match, lists ─▶ names ─▶ TCP state ─▶ standing ─▶ sieves ─▶ connections ─▶ charge ─▶ observe ─▶ verdict
//!                                                     ▲ │   └───────────── refused ───────────┴─▶ answer ─────────┘
//!                                                     └─┴─ cookies
//! ```
//!
//! The entry parses the packet, looks up its source, and finds the limits that count it. The
//! strongest rule comes first: an excluded source passes; a blocked or banned source is dropped,
//! and so is a source that a counting limit blocks. A packet dropped by a ban goes to a stage that
//! only counts it.
//!
//! If the limits depend on the packet's DNS [question](crate::dns), the question is read, and
//! limits that do not count it are left out. If they depend on the [state](crate::packet::TcpState)
//! of its connection, the network stack reports the state, and limits on other states are left out.
//!
//! Then limits that [reserve](crate::standing::Reserves) a part of their buckets decide whether the
//! source must give way to others. This refusal is the cheapest: no other bucket is read. A valid
//! [cookie](crate::cookie) in a DNS query proves its source, and the limits are asked again. Then
//! sieves drop sources that are too busy, under pressure.
//!
//! Then limits on [connections](crate::connection) refuse a packet that would open one connection
//! too many. They count the network stack's open connections, so no packet is charged to them.
//! Sieves come first, since a client that arrives while there is no room has still arrived.
//!
//! Limits on connections of a name decide on data once the name is known: a connection that finds
//! room is admitted.
//!
//! Then every matching limit is asked. One denial drops the packet, and nothing is charged (except
//! that a fixed window counts its own refusals); otherwise all are charged. That takes two passes.
//! The first pass only reads and decides: most denials end there without a write. The second pass
//! swaps each bucket state it read for the decided one, or decides again on the current state. If
//! another CPU has emptied a bucket in between, the earlier charges are refunded and the packet is
//! dropped. In that window, other packets of the same source may be denied that would have passed;
//! none passes that would have been denied.
//!
//! Limits that only observe come last, each by itself, on packets that the others let pass: they
//! are Boulder's spend-only transactions.
//!
//! A packet that a limit or a sieve refuses still passes if it belongs to a connection that the
//! host itself began: limits do not count it then, and its source is not recorded as an offender.
//!
//! A packet refused for lack of tokens may be [answered](crate::answer), unless its source may be
//! the host itself. Writing the answer comes first, which checks the packet; then the answer is
//! charged to the limits of answers. If it cannot be written, or one of these limits refuses,
//! nothing is sent. Only with SYN cookies may a refused packet still pass: a SYN if the listening
//! socket has room, charged like an answer, and an ACK with a valid cookie.
//!
//! Stages hand over in the [`Scratch`]. A new stage is a file here with its method of
//! [`Pipeline`], a line in the table of [`Stage`], and an entry in the kernel's object.

mod account;
mod answer;
mod assumed;
mod banned;
mod charge;
mod charging;
mod connections;
mod cookies;
mod entry;
mod indices;
mod log;
mod names;
mod own_connections;
mod pipeline;
mod reserves;
mod scratch;
mod server_names;
mod sieves;
mod stage;
mod standing;
mod steps;
mod strictest;
mod tcp_state;

pub use self::{
    account::{Account, account},
    assumed::AssumedStack,
    charge::{Charge, Intent, Plan},
    entry::EntryOutcome,
    pipeline::{Pipeline, Progress},
    reserves::{passes_above_reserve, passes_above_reserves, reserve_of},
    scratch::Scratch,
    sieves::{NOT_SCORED, Sieves, sift, sift_by},
    stage::{STAGE_COUNT, Stage},
    steps::{DecisionSteps, decide_again, prepare, record_demand, retry},
};
pub use crate::verdict::Verdict;
#[cfg(not(target_arch = "bpf"))]
use crate::{
    answer::{AnswerOutcome, Exchange, InlineLoops, NativeResponder, respond},
    packet::Frame,
};
use crate::{
    clock::Clock, offender::OffenderTable, packet::Headers, policy::Tables,
    source_tables::SourceTables,
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Decides on a frame: charges its buckets, or records its source as an offender if a limit or
    /// a sieve drops it. If the verdict is to answer the packet, `exchange` has the answer.
    #[cfg(not(target_arch = "bpf"))]
    pub fn decide<F: Frame>(
        &self,
        frame: &F,
        scratch: &mut Scratch<B::Location>,
        exchange: &mut Exchange,
    ) -> Verdict {
        self.decide_with(frame, scratch, exchange, AssumedStack::default())
    }

    /// Decides on a frame like [`Self::decide`], with an assumed network stack.
    #[cfg(not(target_arch = "bpf"))]
    pub fn decide_with<F: Frame>(
        &self,
        frame: &F,
        scratch: &mut Scratch<B::Location>,
        exchange: &mut Exchange,
        assumed: AssumedStack,
    ) -> Verdict {
        let mut next = match self.enter(frame, scratch) {
            EntryOutcome::Decided(verdict) => return verdict,
            EntryOutcome::Banned => Some(Stage::Banned),
            EntryOutcome::Undecided => {
                Stage::first(self.tables.features(), scratch.verdict.matched)
            }
        };
        while let Some(stage) = next {
            if stage == Stage::Names {
                scratch.find_question(frame, self.tables);
            }
            if stage == Stage::ServerNames {
                scratch.find_flow(frame, self.tables, self.source_tables);
            }
            if stage == Stage::TcpState {
                scratch.assume_tcp_state(assumed.others);
            }
            if stage == Stage::Connections {
                scratch.record_full_limits(self.tables, self.source_tables);
            }
            next = match self.run(stage, scratch) {
                Progress::Decided => None,
                Progress::Undecided => stage.next(self.tables.features()),
                Progress::Answer => {
                    let answer = scratch.verdict().answer();
                    let outcome = if self.is_awaited(scratch) && exchange.read(frame) {
                        let now_ns = self.clock.now();
                        let socket = assumed.socket;
                        respond(&NativeResponder { socket, now_ns }, exchange, answer)
                    } else {
                        AnswerOutcome::Nothing
                    };
                    scratch.set_answer_outcome(outcome)
                }
                Progress::Again => Some(Stage::Standing),
                Progress::Admit => {
                    scratch.admit(self.tables, self.source_tables);
                    Some(Stage::Admit)
                }
                Progress::Cookie => {
                    let exchange = exchange.read(frame).then_some(&*exchange);
                    scratch.find_cookie(exchange, &InlineLoops);
                    Some(Stage::Cookies)
                }
            };
        }
        *scratch.verdict()
    }

    /// Decides on a frame without a stage where the entry suffices.
    #[inline(always)]
    pub fn enter<H: Headers>(
        &self,
        headers: &H,
        scratch: &mut Scratch<B::Location>,
    ) -> EntryOutcome {
        entry::enter(
            headers,
            self.clock,
            self.tables,
            self.source_tables,
            scratch,
        )
    }
}
