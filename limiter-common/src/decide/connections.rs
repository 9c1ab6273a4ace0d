//! The stages of connections: drop a packet that would open one connection too many, and data of a
//! connection that has no place among the connections of its name. A connection that finds a place
//! takes it.

use super::{Outline, Pipeline, Progress, Workspace};
#[cfg(not(target_arch = "bpf"))]
use crate::connection::queue::{Flow, Turn};
use crate::{
    clock::Clock,
    connection::{self, Ends, Entrance, Opening, Place, Refusals},
    offender::OffenderStore,
    packet::Facts,
    policy::{Shape, Tables},
    reason::Reason,
    reputation::Reputation,
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: Outline,
    O: OffenderStore,
    R: Reputation,
{
    /// Drops the workspace's packet if it would open a connection and an enforcing limit is full.
    /// The client may be told so, unless it waits in line. The source is not recorded as an
    /// offender, since it may be forged.
    ///
    /// These limits do not apply to segments of open connections, and do not count them. A packet
    /// that asks for a place and is not refused takes it, in a stage of its own.
    #[inline(always)]
    pub(super) fn limit_connections(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        let shape = self.tables.shape();
        let opens = workspace.opens(shape);
        let Workspace {
            refusals, verdict, ..
        } = workspace;
        let enforced = refusals.full & shape.connections & !shape.observing;
        if enforced != 0 {
            let turning_away = enforced & !refusals.waiting;
            let deciding = if turning_away == 0 {
                enforced
            } else {
                turning_away
            };
            let limit_index = deciding.trailing_zeros();
            verdict.drop_by(Reason::TooManyConnections, limit_index);
            if turning_away == 0 {
                return Progress::Decided;
            }
            return self.turn_away(workspace, limit_index);
        }
        if opens {
            verdict.would_drop |= refusals.full & shape.connections;
        } else {
            verdict.matched &= !shape.connections;
        }
        if verdict.matched == 0 {
            verdict.reason = Reason::Unlimited;
            return Progress::Decided;
        }
        if workspace.asks_for_place(shape) {
            return Progress::Place;
        }
        Progress::Undecided
    }

    /// Goes on with the workspace's packet once its connection has its place.
    #[inline(always)]
    #[expect(clippy::unused_self, reason = "as all stages are called")]
    pub(super) const fn take_place(&self, _workspace: &mut Workspace<B::Location>) -> Progress {
        Progress::Undecided
    }
}

impl<Location> Workspace<Location> {
    /// The facts of the packet.
    #[must_use]
    #[inline(always)]
    pub const fn facts(&self) -> &Facts {
        &self.packet.facts
    }

    /// Whether the packet, counted by a limit on connections, is the first of a connection.
    #[must_use]
    #[inline(always)]
    pub const fn is_first_segment(&self) -> bool {
        self.packet.facts.is_first_segment()
    }

    /// Whether the packet would open a connection: its first segment, or data that asks for a place
    /// among the connections of its name.
    #[must_use]
    #[inline(always)]
    pub const fn opens(&self, shape: &Shape) -> bool {
        self.is_first_segment() || self.asks_for_place(shape)
    }

    /// The limits on connections that have made the packet's connection wait: it was a hit of their
    /// sieves when it first asked.
    #[inline(always)]
    pub(super) const fn waiting(&self, shape: &Shape) -> u64 {
        let asked = self.verdict.matched & shape.named_connections();
        if asked != 0 && self.waits { asked } else { 0 }
    }

    /// Whether the packet asks for a place and is refused one.
    #[must_use]
    #[inline(always)]
    pub const fn is_made_to_wait(&self, shape: &Shape) -> bool {
        let refused = self.refusals.full & !shape.observing;
        refused & self.verdict.matched & shape.named_connections() != 0
    }

    /// The ends of the packet's connection.
    #[must_use]
    #[inline(always)]
    pub const fn ends(&self) -> Ends {
        Ends::of_facts(&self.packet.facts)
    }

    /// Whether any limit on connections counts the packet.
    #[must_use]
    #[inline(always)]
    pub const fn may_be_refused(&self, shape: &Shape) -> bool {
        self.verdict.matched & shape.connections != 0
    }

    #[inline(always)]
    const fn opening(&self) -> Opening<'_> {
        Opening::of_packet(&self.packet, &self.verdict)
    }

    /// Returns the limits on connections that count the packet and have no room for another
    /// connection. `open` returns the number of open connections at a place.
    #[inline(always)]
    pub fn full_limits<T: Tables>(&self, tables: &T, open: impl Fn(Place) -> u64) -> u64 {
        self.opening().full(tables, open)
    }

    /// The hash of the packet's connection.
    #[inline(always)]
    pub fn connection_hash<T: Tables>(&self, tables: &T) -> u64 {
        Ends::of_facts(&self.packet.facts).hash(&tables.shape().hash_key)
    }

    /// Returns the place where the limit at an index counts the connections of the packet's owner.
    #[inline(always)]
    pub fn place_at<T: Tables>(&self, tables: &T, limit_index: u32) -> Option<Place> {
        self.opening().place_at(tables, limit_index)
    }

    /// Returns the limits on connections that count the packet, the first of a connection, and do
    /// not let it in. Limits in `full` have no room.
    #[inline(always)]
    pub fn stand_in_line<T: Tables, E: Entrance>(
        &self,
        tables: &T,
        full: u64,
        entrance: &E,
    ) -> Refusals {
        connection::stand_in_line(tables, &self.opening(), full, entrance)
    }

    /// The packet's time of arrival, in nanoseconds.
    #[must_use]
    #[inline(always)]
    pub const fn now_ns(&self) -> u64 {
        self.packet.now
    }

    /// Notes which limits on connections refuse the packet's new connection.
    #[inline(always)]
    pub const fn set_refusals(&mut self, refusals: Refusals) {
        self.refusals = refusals;
    }

    /// Finds these refusals from stores in memory, where there is no network stack.
    #[cfg(not(target_arch = "bpf"))]
    pub fn note_full<T: Tables, R: Reputation>(&mut self, tables: &T, reputation: &R) {
        self.refusals = Refusals::default();
        if self.opens(tables.shape()) {
            let entrance = NativeEntrance {
                workspace: self,
                tables,
                reputation,
            };
            let full = self.full_limits(tables, |place| entrance.open(place));
            self.refusals = self.stand_in_line(tables, full, &entrance);
        }
        if self.is_made_to_wait(tables.shape()) {
            reputation.make_wait(&self.ends());
        }
    }
}

#[cfg(not(target_arch = "bpf"))]
impl<Location> Workspace<Location> {
    /// Gives the packet's connection its place.
    pub fn take_place<T: Tables, R: Reputation>(&self, tables: &T, reputation: &R) {
        let ends = self.ends();
        reputation.serve(&ends);
        let named = self.verdict.matched & tables.shape().named_connections();
        let mut rest = named;
        while rest != 0 {
            let limit_index = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            if let Some(place) = self.place_at(tables, limit_index) {
                reputation.count_connection(place);
            }
        }
    }
}

/// The entrance to connections, with stores in memory.
#[cfg(not(target_arch = "bpf"))]
struct NativeEntrance<'a, Location, T, R> {
    workspace: &'a Workspace<Location>,
    tables: &'a T,
    reputation: &'a R,
}

#[cfg(not(target_arch = "bpf"))]
impl<Location, T, R> Entrance for NativeEntrance<'_, Location, T, R>
where
    T: Tables,
    R: Reputation,
{
    fn waiting(&self, index: usize, place: Place) -> u64 {
        let settings = &self.tables.shape().queues[index];
        self.reputation
            .waiting(settings, place, self.workspace.now_ns())
    }

    fn place_at(&self, limit_index: u32) -> Option<Place> {
        self.workspace.place_at(self.tables, limit_index)
    }

    fn open(&self, place: Place) -> u64 {
        self.reputation.connections(place)
    }

    fn turn(&self, index: usize, place: Place, room: u64) -> Turn {
        let settings = &self.tables.shape().queues[index];
        let now_ns = self.workspace.now_ns();
        let connection = self.workspace.connection_hash(self.tables);
        let flow = Flow::new(connection, settings.limit);
        self.reputation.turn(settings, place, flow, room, now_ns)
    }
}
