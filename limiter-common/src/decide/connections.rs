//! The stages of connections: drop a packet that would open one connection too many, and data of a
//! connection that is not admitted among the connections of its name. A connection that finds room
//! is admitted.

use super::{DecisionSteps, Pipeline, Progress, Scratch};
#[cfg(not(target_arch = "bpf"))]
use crate::connection::queue::{OpeningId, Turn};
use crate::{
    clock::Clock,
    connection::{self, CountId, Ends, Entrance, Opening, Refusals},
    offender::OffenderTable,
    packet::Facts,
    policy::{Features, Tables},
    reason::Reason,
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
    /// Drops the current packet if it would open a connection and an enforcing limit is full.
    /// The client may be told so, unless it waits in line. The source is not recorded as an
    /// offender, since it may be forged.
    ///
    /// These limits do not apply to segments of open connections, and do not count them. The
    /// connection of a packet that asks for admission and is not refused is admitted, in a stage of its own.
    #[inline(always)]
    pub(super) fn limit_connections(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        let features = self.tables.features();
        let opens = scratch.opens(features);
        let Scratch {
            refusals, verdict, ..
        } = scratch;
        let enforced = refusals.full & features.connections & !features.observing;
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
            return self.turn_away(scratch, limit_index);
        }
        if opens {
            verdict.would_drop |= refusals.full & features.connections;
        } else {
            verdict.matched &= !features.connections;
        }
        if verdict.matched == 0 {
            verdict.reason = Reason::Unlimited;
            return Progress::Decided;
        }
        if scratch.needs_admission(features) {
            return Progress::Admit;
        }
        Progress::Undecided
    }

    /// Goes on with the current packet once its connection is admitted.
    #[inline(always)]
    #[expect(clippy::unused_self, reason = "as all stages are called")]
    pub(super) const fn admit(&self, _scratch: &mut Scratch<B::Location>) -> Progress {
        Progress::Undecided
    }
}

impl<Location> Scratch<Location> {
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

    /// Whether the packet would open a connection: its first segment, or data that asks for admission
    /// among the connections of its name.
    #[must_use]
    #[inline(always)]
    pub const fn opens(&self, features: &Features) -> bool {
        self.is_first_segment() || self.needs_admission(features)
    }

    /// The limits on connections that have made the packet's connection wait: it was a hit of their
    /// sieves when it first asked.
    #[inline(always)]
    pub(super) const fn waiting(&self, features: &Features) -> u64 {
        let counting = self.verdict.matched & features.named_connections();
        if counting != 0 && self.waits {
            counting
        } else {
            0
        }
    }

    /// Whether the packet asks for admission and is refused.
    #[must_use]
    #[inline(always)]
    pub const fn is_made_to_wait(&self, features: &Features) -> bool {
        let refused = self.refusals.full & !features.observing;
        refused & self.verdict.matched & features.named_connections() != 0
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
    pub const fn may_be_refused(&self, features: &Features) -> bool {
        self.verdict.matched & features.connections != 0
    }

    #[inline(always)]
    const fn opening(&self) -> Opening<'_> {
        Opening::of_packet(&self.packet, &self.verdict)
    }

    /// Returns the limits on connections that count the packet and have no room for another
    /// connection. `open` returns the number of open connections under a count id.
    #[inline(always)]
    pub fn full_limits<T: Tables>(&self, tables: &T, open: impl Fn(CountId) -> u64) -> u64 {
        self.opening().full(tables, open)
    }

    /// The hash of the packet's connection.
    #[inline(always)]
    pub fn connection_hash<T: Tables>(&self, tables: &T) -> u64 {
        Ends::of_facts(&self.packet.facts).hash(&tables.features().hash_key)
    }

    /// Returns the count id under which the limit at an index counts the connections of the packet's key.
    #[inline(always)]
    pub fn count_id_at<T: Tables>(&self, tables: &T, limit_index: u32) -> Option<CountId> {
        self.opening().count_id_at(tables, limit_index)
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

    /// Records which limits on connections refuse the packet's new connection.
    #[inline(always)]
    pub const fn set_refusals(&mut self, refusals: Refusals) {
        self.refusals = refusals;
    }

    /// Finds these refusals from tables in memory, where there is no network stack.
    #[cfg(not(target_arch = "bpf"))]
    pub fn record_full_limits<T: Tables, R: SourceTables>(
        &mut self,
        tables: &T,
        source_tables: &R,
    ) {
        self.refusals = Refusals::default();
        if self.opens(tables.features()) {
            let entrance = NativeEntrance {
                scratch: self,
                tables,
                source_tables,
            };
            let full = self.full_limits(tables, |count_id| entrance.open(count_id));
            self.refusals = self.stand_in_line(tables, full, &entrance);
        }
        if self.is_made_to_wait(tables.features()) {
            source_tables.make_wait(&self.ends());
        }
    }
}

#[cfg(not(target_arch = "bpf"))]
impl<Location> Scratch<Location> {
    /// Admits the packet's connection.
    pub fn admit<T: Tables, R: SourceTables>(&self, tables: &T, source_tables: &R) {
        let ends = self.ends();
        source_tables.serve(&ends);
        let named = self.verdict.matched & tables.features().named_connections();
        let mut rest = named;
        while rest != 0 {
            let limit_index = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            if let Some(count_id) = self.count_id_at(tables, limit_index) {
                source_tables.count_connection(count_id);
            }
        }
    }
}

/// The entrance to connections, with tables in memory.
#[cfg(not(target_arch = "bpf"))]
struct NativeEntrance<'a, Location, T, R> {
    scratch: &'a Scratch<Location>,
    tables: &'a T,
    source_tables: &'a R,
}

#[cfg(not(target_arch = "bpf"))]
impl<Location, T, R> Entrance for NativeEntrance<'_, Location, T, R>
where
    T: Tables,
    R: SourceTables,
{
    fn waiting(&self, index: usize, count_id: CountId) -> u64 {
        let settings = &self.tables.features().queues[index];
        self.source_tables
            .waiting(settings, count_id, self.scratch.now_ns())
    }

    fn count_id_at(&self, limit_index: u32) -> Option<CountId> {
        self.scratch.count_id_at(self.tables, limit_index)
    }

    fn open(&self, count_id: CountId) -> u64 {
        self.source_tables.connections(count_id)
    }

    fn turn(&self, index: usize, count_id: CountId, room: u64) -> Turn {
        let settings = &self.tables.features().queues[index];
        let now_ns = self.scratch.now_ns();
        let connection = self.scratch.connection_hash(self.tables);
        let opening_id = OpeningId::new(connection, settings.limit);
        self.source_tables
            .turn(settings, count_id, opening_id, room, now_ns)
    }
}
