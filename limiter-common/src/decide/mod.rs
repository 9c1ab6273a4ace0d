//! The decision: a pipeline of stages, from a frame to its verdict.
//!
//! ```text
//! entry: parse, match, lists ─▶ names ─▶ TCP state ─▶ standing ─▶ sieves ─▶ connections ─▶ charge ─▶ observe ─▶ verdict
//!                                                     ▲ │   └───────────── refused ───────────┴─▶ answer ─────────┘
//!                                                     └─┴─ cookies
//! ```
//!
//! The entry finds the facts of the packet, what is known of its source, and the limits that count
//! it. The strongest rule comes first: an excluded source passes; a blocked or banned one is
//! dropped, and so is one that a limit that counts the packet blocks. A packet that a ban drops goes
//! to a stage that only counts it.
//!
//! If the limits that count the packet depend on its [question](crate::dns), that is read, and those
//! that do not count it are left. If they depend on the [state](crate::packet::TcpState) of its
//! connection, the network stack is asked for it, and those of other states are left.
//!
//! Then limits that [reserve](crate::standing::Reserves) a part of their buckets are asked whether
//! the source must give way to others. That refusal is the cheapest: no other bucket is read. If the
//! packet is a DNS query with a valid [cookie](crate::cookie), its source is proven by that, and asked
//! for again. Then sieves drop sources that are too busy, under pressure.
//!
//! Then limits on [connections](crate::connection) refuse a packet that would open one more than
//! they allow at once. They count what the network stack has open, so no packet is charged to them.
//! Sieves come before them, since who comes while there is no room has come all the same.
//!
//! Limits on connections of a name decide on data once the name is known: what finds room takes its place.
//!
//! Then every matching limit is asked. One denial drops the packet, and nothing is charged (except
//! that a fixed window counts what it itself refuses); otherwise all are charged. That takes two
//! passes. The first only reads, and decides on what it sees: most denials end there without a
//! write. The second swaps each state that was seen for the one that was decided on, or else
//! decides again on the current state. If another CPU has emptied a bucket in between, the earlier
//! charges are refunded and the packet is dropped. In that window, other packets of the same source
//! may be denied that would have passed; none passes that would have been denied.
//!
//! Limits that only observe come last, each by itself, on packets that the others let pass: they
//! are Boulder's spend-only transactions.
//!
//! A packet that a limit or a sieve refuses passes after all if it belongs to a connection that the host
//! itself began: it is neither counted by limits then, nor is its source recorded as an offender.
//!
//! A packet that a limit refuses for want of tokens may be [answered](crate::answer), unless its
//! source may be the host itself. First the answer is written, which checks the packet; then it is
//! charged to the limits of answers. If it cannot be written, or one of them refuses, nothing is
//! sent. Only with SYN cookies a refused packet may pass after all: a SYN for which the listening
//! socket has room, charged like an answer, and an ACK that brings a valid cookie.
//!
//! Stages hand over in the [`Workspace`]. A new stage is a file here with its method of
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
mod outline;
mod own_connections;
mod pipeline;
mod reserves;
mod server_names;
mod sieves;
mod stage;
mod standing;
mod strictest;
mod tcp_state;
mod workspace;

pub use self::{
    account::{Account, account},
    assumed::AssumedStack,
    charge::{Charge, Intent, Plan},
    entry::Entered,
    outline::{Outline, decide_again, note_wanting, prepare, retry},
    pipeline::{Pipeline, Progress},
    reserves::{keep_reserve, keep_reserves, reserve_of},
    sieves::{NOT_SCORED, Sieves, sift, sift_by},
    stage::{STAGE_COUNT, Stage},
    workspace::Workspace,
};
pub use crate::verdict::Verdict;
#[cfg(not(target_arch = "bpf"))]
use crate::{
    answer::{Exchange, InlineLoops, NativeResponder, Response, respond},
    packet::Frame,
};
use crate::{
    clock::Clock, offender::OffenderStore, packet::Headers, policy::Tables, reputation::Reputation,
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: Outline,
    O: OffenderStore,
    R: Reputation,
{
    /// Decides on a frame: charges its buckets, or records its source as an offender if a limit or
    /// a sieve drops it. If the verdict says that it is answered, `exchange` has the answer.
    #[cfg(not(target_arch = "bpf"))]
    pub fn decide<F: Frame>(
        &self,
        frame: &F,
        workspace: &mut Workspace<B::Location>,
        exchange: &mut Exchange,
    ) -> Verdict {
        self.decide_with(frame, workspace, exchange, AssumedStack::default())
    }

    /// Does the same with another network stack.
    #[cfg(not(target_arch = "bpf"))]
    pub fn decide_with<F: Frame>(
        &self,
        frame: &F,
        workspace: &mut Workspace<B::Location>,
        exchange: &mut Exchange,
        assumed: AssumedStack,
    ) -> Verdict {
        let mut next = match self.enter(frame, workspace) {
            Entered::Decided(verdict) => return verdict,
            Entered::Banned => Some(Stage::Banned),
            Entered::Undecided => Stage::first(self.tables.shape(), workspace.verdict.matched),
        };
        while let Some(stage) = next {
            if stage == Stage::Names {
                workspace.find_question(frame, self.tables);
            }
            if stage == Stage::ServerNames {
                workspace.find_flow(frame, self.tables, self.reputation);
            }
            if stage == Stage::TcpState {
                workspace.assume_tcp_state(assumed.others);
            }
            if stage == Stage::Connections {
                workspace.note_full(self.tables, self.reputation);
            }
            next = match self.run(stage, workspace) {
                Progress::Decided => None,
                Progress::Undecided => stage.next(self.tables.shape()),
                Progress::Answer => {
                    let answer = workspace.verdict().answer();
                    let response = if self.is_awaited(workspace) && exchange.read(frame) {
                        let now_ns = self.clock.now();
                        let socket = assumed.socket;
                        respond(&NativeResponder { socket, now_ns }, exchange, answer)
                    } else {
                        Response::Nothing
                    };
                    workspace.note(response)
                }
                Progress::Again => Some(Stage::Standing),
                Progress::Place => {
                    workspace.take_place(self.tables, self.reputation);
                    Some(Stage::Place)
                }
                Progress::Cookie => {
                    let exchange = exchange.read(frame).then_some(&*exchange);
                    workspace.find_cookie(exchange, &InlineLoops);
                    Some(Stage::Cookies)
                }
            };
        }
        *workspace.verdict()
    }

    /// Decides on a frame, if that takes no stage.
    #[inline(always)]
    pub fn enter<H: Headers>(
        &self,
        headers: &H,
        workspace: &mut Workspace<B::Location>,
    ) -> Entered {
        entry::enter(headers, self.clock, self.tables, self.reputation, workspace)
    }
}
