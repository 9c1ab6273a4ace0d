//! The state of one connection.

use super::{
    FirstBytes, MOST_FIRST_BYTES, MOST_RECORDS, Meaning, Overlap, RECORD_START, Record, Records,
};
use crate::{packet::NameMatch, policy::Features};

/// A connection that the policy may count by the server name that its client asks for. It consists of plain
/// numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowRecord {
    /// The cookie of its socket.
    pub cookie: u64,
    /// The meaning of its name.
    pub meaning: Meaning,
    /// The time at which held data was first sent to userspace, in nanoseconds; 0: never.
    held_ns: u64,
    /// [`NEW`], [`IN_SERVICE`] or [`WAITS`].
    service: u32,
    /// The sequence number of its first byte.
    pub first: u32,
    /// [`UNREAD`], [`UNFINISHED`], [`READ`], [`HIDDEN`] or [`CONTRADICTORY`].
    state: u32,
    /// The number of its first bytes that were read: segments must repeat them unchanged.
    bytes_read: u32,
    /// The number of its segments sent to userspace until its name was read.
    reported: u16,
    /// The number of segments sent to userspace since then: with bytes read before, or of a second hello.
    reported_again: u16,
    /// The number of a [`Records`]: whether a second hello may begin behind the bytes read so far.
    records: u16,
    /// Not 0: data passed before its name was read.
    has_passed: u16,
}

/// The fate of a segment behind a hello, by its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SegmentFate {
    /// Nothing in it can be part of a second hello.
    Passes = 0,
    /// It comes again along with the bytes missing before it, or no honest client sends it.
    Held = 1,
    /// It has bytes of a second hello, which userspace reads.
    SecondHello = 2,
}

/// It has not asked for admission among the connections of its name.
const NEW: u32 = 0;
/// It is admitted, or no limit on these connections stood in its way.
const IN_SERVICE: u32 = 1;
/// It has asked for admission, and there was no room.
const WAITS: u32 = 2;

/// Its name is not read yet.
const UNREAD: u32 = 0;
/// Its name is not read yet, because its client has not sent the bytes with the name, or not in a readable
/// form. Any other outcome would be the client's choice.
const UNFINISHED: u32 = 1;
/// Its name was read, or it has none.
const READ: u32 = 2;
/// It counts as without a name, but the server may find one in bytes behind the bytes read so far.
const HIDDEN: u32 = 3;
/// Its client has sent different bytes at one position: the server may have taken either. Such a connection
/// is over.
const CONTRADICTORY: u32 = 4;

/// The time for which data is held while its connection's name is not read, in nanoseconds, from the first held
/// segment sent to userspace. Clients with a timer that begins at 200 ms try twice in that time.
const LONGEST_HOLD_NS: u64 = 1_000_000_000;

/// The most segments of a connection sent to userspace, so that no connection takes the share of others by
/// repeating its first bytes. A hello takes two or three. Userspace writes a connection once while it is
/// unread, and may undo the count meanwhile: so at most twice as many are sent.
const MOST_REPORTED: u16 = 16;

impl FlowRecord {
    /// Makes a connection that begins.
    #[must_use]
    #[inline(always)]
    pub const fn new(cookie: u64, first: u32) -> Self {
        Self {
            cookie,
            meaning: Meaning::NONE,
            held_ns: 0,
            service: NEW,
            first,
            reported: 0,
            state: UNREAD,
            bytes_read: 0,
            reported_again: 0,
            records: Records::Read as u16,
            has_passed: 0,
        }
    }

    /// Returns the connection with its name read; `meaning` is the policy's result for the name.
    #[must_use]
    pub const fn read(self, meaning: Meaning) -> Self {
        Self {
            meaning,
            state: if self.is_read() { self.state } else { READ },
            ..self
        }
    }

    /// Returns the connection counted as one without a name, though unread bytes may have one.
    #[must_use]
    pub const fn hidden(self) -> Self {
        Self {
            state: HIDDEN,
            ..self
        }
    }

    /// Whether unread bytes may have its name: limits that hold data then hold its data.
    #[must_use]
    #[inline(always)]
    pub const fn is_hidden(&self) -> bool {
        self.state == HIDDEN
    }

    /// Returns the connection with `bytes_read` first bytes read. `records`: whether a second hello may begin
    /// behind them.
    #[must_use]
    pub const fn with_first_bytes(self, bytes_read: u32, records: Records) -> Self {
        Self {
            bytes_read,
            records: records as u16,
            ..self
        }
    }

    /// Whether a second hello may come, or comes.
    #[must_use]
    #[inline(always)]
    pub const fn awaits_records(&self) -> bool {
        self.records != Records::Read as u16
    }

    /// The records behind its hello.
    #[must_use]
    pub const fn records(&self) -> Records {
        match self.records {
            1 => Records::Awaited,
            2 => Records::SecondHello,
            _ => Records::Read,
        }
    }

    /// Reads the records in a segment with `length` bytes of payload from the sequence number `sequence` on.
    /// Adds the bytes read to `first`, so that they cannot come again with other values. `load(before, length)`
    /// returns up to eight bytes of the payload, behind `before` bytes, the first byte lowest; `None`: they
    /// cannot be read.
    #[inline(always)]
    pub fn follow(
        &mut self,
        first: &mut FirstBytes,
        (sequence, length): (u32, u32),
        load: impl Fn(u32, u32) -> Option<u64>,
    ) -> SegmentFate {
        for _ in 0..MOST_RECORDS {
            let before = (self.first.wrapping_add(self.bytes_read)).wrapping_sub(sequence);
            let is_behind = before.cast_signed() < 0;
            if length == 0 || !is_behind && before >= length {
                return SegmentFate::Passes;
            }
            if self.records == Records::SecondHello as u16 {
                return SegmentFate::SecondHello;
            }
            if is_behind || self.bytes_read > MOST_FIRST_BYTES - 8 {
                return SegmentFate::Held;
            }
            let there = length - before;
            if there < RECORD_START {
                return SegmentFate::Held;
            }
            let Some(start) = load(before, RECORD_START) else {
                return SegmentFate::Held;
            };
            let record = Record::new(start, there);
            let read = match record {
                Record::Before(length) => length,
                Record::Other => RECORD_START,
                Record::Hello => {
                    self.records = Records::SecondHello as u16;
                    return SegmentFate::SecondHello;
                }
                Record::Unread => return SegmentFate::Held,
            };
            let bytes = if read == RECORD_START {
                Some(start)
            } else {
                load(before, read)
            };
            let Some(bytes) = bytes else {
                return SegmentFate::Held;
            };
            first.put(self.bytes_read, bytes, read);
            self.bytes_read += read;
            if matches!(record, Record::Other) {
                self.records = Records::Read as u16;
                return SegmentFate::Passes;
            }
        }
        SegmentFate::Held
    }

    /// Returns the connection marked: its client has sent different bytes at one position.
    #[must_use]
    pub const fn contradictory(self) -> Self {
        Self {
            state: CONTRADICTORY,
            ..self
        }
    }

    /// Returns the connection marked: its client is to blame for the unread name, so from now on data is held
    /// until the name is read, without a time limit. `None`: it is marked already, its name was read, or no
    /// data was ever held.
    #[must_use]
    pub const fn unfinished(self) -> Option<Self> {
        if self.state == UNREAD && self.held_ns != 0 {
            Some(Self {
                state: UNFINISHED,
                ..self
            })
        } else {
            None
        }
    }

    /// Whether its client has sent different bytes at one position.
    #[must_use]
    #[inline(always)]
    pub const fn is_contradictory(&self) -> bool {
        self.state == CONTRADICTORY
    }

    /// The number of its first bytes that were read.
    #[must_use]
    #[inline(always)]
    pub const fn bytes_read(&self) -> u32 {
        self.bytes_read
    }

    /// Returns the bytes of a segment that repeat read bytes, or `None` if none do. The segment's payload has
    /// `length` bytes from the sequence number `sequence` on.
    #[must_use]
    #[inline(always)]
    pub const fn overlap(&self, sequence: u32, length: u32) -> Option<Overlap> {
        Overlap::new((self.first, self.bytes_read), sequence, length)
    }

    /// Returns the connection in service: limits on connections of its name no longer ask for it.
    #[must_use]
    #[inline(always)]
    pub const fn served(self) -> Self {
        Self {
            service: IN_SERVICE,
            ..self
        }
    }

    /// Records that it is in service.
    #[inline(always)]
    pub const fn serve(&mut self) {
        self.service = IN_SERVICE;
    }

    /// Records that it has asked for admission, and there was no room.
    #[inline(always)]
    pub const fn make_wait(&mut self) {
        if self.service == NEW {
            self.service = WAITS;
        }
    }

    /// Whether it has asked for admission, and there was no room: sieves have seen it.
    #[must_use]
    #[inline(always)]
    pub const fn is_waiting(&self) -> bool {
        self.service == WAITS
    }

    /// Whether it is in service.
    #[must_use]
    #[inline(always)]
    pub const fn is_in_service(&self) -> bool {
        self.service == IN_SERVICE
    }

    /// Whether data arriving at the time `now_ns` is held until its name is read; `is_reported`: userspace
    /// gets this data.
    ///
    /// Holding is limited in time, so that data passes if no reader of names runs. The time begins with the
    /// first segment sent to userspace, because no server can use bytes behind missing first bytes. There is no
    /// time limit for a client that is to blame, nor for data that repeats read bytes until these are known.
    #[must_use]
    #[inline(always)]
    pub const fn hold(&mut self, now_ns: u64, is_reported: bool) -> bool {
        if self.held_ns == 0 && is_reported {
            self.held_ns = if now_ns == 0 { 1 } else { now_ns };
        }
        let is_held = self.state != UNREAD
            || self.held_ns == 0
            || now_ns.saturating_sub(self.held_ns) < LONGEST_HOLD_NS;
        if !is_held {
            self.has_passed = 1;
        }
        is_held
    }

    /// Whether data passed before its name was read: the start of its records is unknown.
    #[must_use]
    pub const fn has_passed(&self) -> bool {
        self.has_passed != 0
    }

    /// Returns the sequence number of the first unread byte of a second hello.
    #[must_use]
    pub const fn second_hello(&self) -> Option<u32> {
        if self.records == Records::SecondHello as u16 {
            Some(self.first.wrapping_add(self.bytes_read))
        } else {
            None
        }
    }

    /// Whether its name was read, or found missing.
    #[must_use]
    #[inline(always)]
    pub const fn is_read(&self) -> bool {
        self.state >= READ
    }

    /// Whether the content of its segments matters: their bytes are read or compared, or data is held or asks
    /// for admission.
    #[must_use]
    #[inline(always)]
    pub const fn needs_inspection(&self, features: &Features, may_be_held: bool) -> bool {
        !self.is_read()
            || self.bytes_read != 0
            || self.needs_admission(features)
            || self.is_hidden() && may_be_held
    }

    /// Whether to send a segment to userspace, which is counted. Before the name is read these are segments
    /// with first bytes; later, segments of a second hello, and segments with read bytes that the caller has no
    /// copy of.
    #[must_use]
    #[inline(always)]
    pub const fn should_report(&mut self, sequence: u32, length: u32) -> bool {
        let (most, reported) = if self.is_read() && !self.awaits_records() {
            (self.bytes_read, &mut self.reported_again)
        } else if self.is_read() {
            (MOST_FIRST_BYTES, &mut self.reported_again)
        } else {
            (MOST_FIRST_BYTES, &mut self.reported)
        };
        let is_reported = *reported < MOST_REPORTED;
        let first = (self.first, most);
        if !is_reported || Overlap::new(first, sequence, length).is_none() {
            return false;
        }
        *reported += 1;
        true
    }

    /// Whether limits on connections of its name decide whether its data passes.
    #[must_use]
    #[inline(always)]
    pub const fn needs_admission(&self, features: &Features) -> bool {
        !self.is_in_service()
            && self.meaning.limits_of(features.server_names) & features.connections != 0
    }

    /// Returns the limits that count the connection itself: none until it is in service.
    #[must_use]
    #[inline(always)]
    pub const fn counted_as(&self, features: &Features) -> NameMatch {
        let is_counted = self.is_in_service() as u64;
        NameMatch {
            limits: self.meaning.limits_of(features.server_names) & 0u64.wrapping_sub(is_counted),
            zone: self.meaning.name,
            ..NameMatch::NOTHING
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_numbers_go_round() {
        for (sequence, is_awaited) in [
            (u32::MAX - 1, true),
            (0, true),
            (MOST_FIRST_BYTES - 3, true),
            (MOST_FIRST_BYTES - 2, false),
            // Before the first byte.
            (u32::MAX - 2, false),
            (1 << 31, false),
        ] {
            let found = FlowRecord::new(7, u32::MAX - 1).should_report(sequence, 1);
            assert_eq!(found, is_awaited, "{sequence}");
        }
    }

    #[test]
    fn a_segment_has_what_was_read_wherever_it_begins_and_ends() {
        let first = u32::MAX - 1;
        let flow = FlowRecord::new(7, first).read(Meaning::NONE);
        assert_eq!(flow.overlap(first, 1), None);
        let flow = flow.with_first_bytes(10, Records::Read);
        for (position, length, expected) in [
            (0_u32, 10, Some((0, 0, 10))),
            (0, 100, Some((0, 0, 10))),
            (3, 4, Some((3, 0, 4))),
            (9, u32::MAX >> 1, Some((9, 0, 1))),
            (10, 5, None),
            (0_u32.wrapping_sub(3), 5, Some((0, 3, 2))),
            (0_u32.wrapping_sub(3), 50, Some((0, 3, 10))),
            (0_u32.wrapping_sub(3), 3, None),
            (1 << 31, 9000, None),
            (0, 0, None),
        ] {
            let found = flow.overlap(first.wrapping_add(position), length);
            let found = found.map(|part| (part.position, part.skipped, part.length));
            assert_eq!(found, expected, "{position} {length}");
        }
    }

    #[test]
    fn what_was_read_is_told_again_for_some_times() {
        let mut flow = FlowRecord::new(7, 1)
            .read(Meaning::NONE)
            .with_first_bytes(10, Records::Read);
        assert!(!flow.should_report(11, 5) && flow.hold(0, false) && flow.hold(u64::MAX, true));
        let reported = (0..100).filter(|_| flow.should_report(10, 5)).count();
        assert_eq!(reported, MOST_REPORTED as usize);
    }

    const HELLO: u32 = 100;

    /// Returns a function that sends segments to a connection behind a hello.
    fn behind_hello(first: u32) -> impl FnMut(u32, &[u8]) -> SegmentFate {
        let mut flow = FlowRecord::new(7, first).read(Meaning::NONE);
        flow = flow.with_first_bytes(HELLO, Records::Awaited);
        let mut bytes = FirstBytes::NONE;
        move |position, payload| {
            let load = |before: u32, length: u32| {
                let (before, length) = (before as usize, length as usize);
                let mut found = [0; 8];
                found[..length].copy_from_slice(payload.get(before..before + length)?);
                Some(u64::from_le_bytes(found))
            };
            let numbers = (
                first.wrapping_add(position),
                u32::try_from(payload.len()).unwrap(),
            );
            let was_read = flow.bytes_read();
            let followed = flow.follow(&mut bytes, numbers, load);
            for at in was_read..flow.bytes_read() {
                let part = Overlap::new((first, at + 1), first.wrapping_add(at), 1).unwrap();
                let mut same = FirstBytes::NONE;
                same.write(at, &payload[(at - position) as usize..][..1]);
                assert!(bytes.agrees(&mut same, &part), "{at}");
            }
            if !flow.awaits_records() {
                return SegmentFate::Passes;
            }
            followed
        }
    }

    const CCS: &[u8] = b"\x14\x03\x03\0\x01\x01";
    const DATA: &[u8] = b"\x17\x03\x03\0\x35 and so on";
    const SECOND: &[u8] = b"\x16\x03\x03\x02\0\x01 and so on";

    #[test]
    fn what_follows_a_hello_passes_and_a_second_hello_is_told() {
        for first in [1, u32::MAX - 50, u32::MAX - HELLO - 2] {
            for (segments, expected) in [
                (&[DATA][..], &[SegmentFate::Passes][..]),
                (&[CCS, DATA, SECOND], &[SegmentFate::Passes; 3]),
                (&[&[CCS, DATA].concat()], &[SegmentFate::Passes]),
                (&[SECOND], &[SegmentFate::SecondHello]),
                (
                    &[CCS, SECOND, b"more"],
                    &[
                        SegmentFate::Passes,
                        SegmentFate::SecondHello,
                        SegmentFate::SecondHello,
                    ],
                ),
                (&[&[CCS, SECOND].concat()], &[SegmentFate::SecondHello]),
                (&[&CCS.repeat(9)], &[SegmentFate::Held]),
                (&[&SECOND[..3], &SECOND[3..]], &[SegmentFate::Held; 2]),
            ] {
                let mut send = behind_hello(first);
                let mut position = HELLO;
                for (segment, expected) in segments.iter().zip(expected) {
                    assert_eq!(send(position, segment), *expected, "{segments:?} {first}");
                    position += u32::try_from(segment.len()).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_comes_too_early_is_held_and_what_comes_again_passes() {
        let mut send = behind_hello(9);
        assert_eq!(send(HELLO + 6, DATA), SegmentFate::Held);
        assert_eq!(send(0, &[b'x'; HELLO as usize]), SegmentFate::Passes);
        assert_eq!(send(HELLO + 6, b""), SegmentFate::Passes);
        let again = [&[b'x'; 3], CCS].concat();
        assert_eq!(send(HELLO - 3, &again), SegmentFate::Passes);
        assert_eq!(send(HELLO - 3, &again), SegmentFate::Passes);
        assert_eq!(send(HELLO + 6, DATA), SegmentFate::Passes);
    }

    #[test]
    fn a_contradictory_connection_stays_so() {
        let flow = FlowRecord::new(7, 1).contradictory();
        assert!(flow.is_read() && flow.is_contradictory());
        assert!(flow.read(Meaning::NONE).is_contradictory());
    }

    #[test]
    fn a_hidden_name_stays_so_unless_its_client_contradicts_itself() {
        let mut flow = FlowRecord::new(7, 1).read(Meaning::NONE).hidden();
        flow = flow.read(Meaning::NONE);
        assert!(flow.is_read() && flow.is_hidden() && flow.hold(u64::MAX, true));
        assert_eq!(flow.unfinished(), None);
        assert!(!flow.contradictory().is_hidden());
    }

    #[test]
    fn nobody_is_told_the_same_for_ever_or_what_is_read() {
        let mut flow = FlowRecord::new(7, 1);
        let reported = (0..100).filter(|_| flow.should_report(2, 1)).count();
        assert_eq!(reported, MOST_REPORTED as usize);
        assert!(!flow.is_read());
        let mut read = FlowRecord::new(7, 1).read(Meaning::NONE);
        assert!(!read.should_report(2, 1) && read.is_read());
    }

    #[test]
    fn nothing_is_held_for_ever_because_nobody_reads() {
        let mut flow = FlowRecord::new(7, 1);
        for (now_ns, is_held) in [
            (5, true),
            (LONGEST_HOLD_NS, true),
            (LONGEST_HOLD_NS + 5, false),
        ] {
            assert_eq!(flow.hold(now_ns, true), is_held, "{now_ns}");
        }
    }

    /// Bytes outside the first bytes do not start the time: its hello is still held when it comes.
    #[test]
    fn the_time_begins_with_what_is_told() {
        let mut flow = FlowRecord::new(7, 100);
        for (now_ns, sequence) in [(5, 100 + MOST_FIRST_BYTES), (6, 99), (u64::MAX / 2, 99)] {
            let is_reported = flow.should_report(sequence, 1);
            assert!(!is_reported && flow.hold(now_ns, is_reported), "{sequence}");
        }
        let now_ns = u64::MAX / 2;
        let is_reported = flow.should_report(100, 500);
        assert!(is_reported && flow.hold(now_ns, is_reported));
        assert!(flow.unfinished().is_some());
        assert!(!flow.hold(now_ns + LONGEST_HOLD_NS, false));
    }

    /// Independent of the number of its segments, and of the time.
    #[test]
    fn whoever_does_not_say_its_name_is_held() {
        let mut flow = FlowRecord::new(7, 1);
        while flow.should_report(2, 1) {}
        // Nothing is held so far.
        assert_eq!(flow.unfinished(), None);
        assert!(flow.hold(5, true) && flow.hold(LONGEST_HOLD_NS, false));
        let mut unfinished = flow.unfinished().unwrap();
        assert!(!unfinished.is_read() && !unfinished.should_report(2, 1));
        assert!(unfinished.hold(u64::MAX, false));
        assert_eq!(unfinished.unfinished(), None);
        assert!(unfinished.read(Meaning::NONE).is_read());
        assert_eq!(flow.read(Meaning::NONE).unfinished(), None);
    }

    #[test]
    fn whoever_is_in_service_asks_for_no_admission() {
        let features = Features {
            connections: 0b100,
            by_server_name: 0b101,
            server_names: 3,
            ..Features::EMPTY
        };
        let name_match = |limits| NameMatch {
            limits,
            zone: 9,
            ..NameMatch::NOTHING
        };
        let flow = FlowRecord::new(7, 1).read(Meaning::new(3, &name_match(0b101)));
        let mut waiting = flow;
        waiting.make_wait();
        assert!(waiting.is_waiting() && !flow.is_waiting());
        for flow in [flow, waiting] {
            assert!(flow.needs_admission(&features) && flow.counted_as(&features).limits == 0);
        }
        let mut served = flow.served();
        served.make_wait();
        assert!(!served.needs_admission(&features));
        assert_eq!(served.counted_as(&features), name_match(0b101));
        for meaning in [
            Meaning::new(3, &name_match(1)),
            Meaning::new(4, &name_match(0b101)),
        ] {
            assert!(
                !FlowRecord::new(7, 1)
                    .read(meaning)
                    .needs_admission(&features)
            );
        }
    }
}
