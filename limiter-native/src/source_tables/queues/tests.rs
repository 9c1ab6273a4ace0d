use limiter_common::connection::queue::{Ticket, Turn, WAITS, established, turn};

use super::*;

const SECOND: u64 = 1_000_000_000;
const COUNT_ID: CountId = CountId(0x5_0000_0000);

/// A key's queue, with `room` for as many connections.
struct Door {
    queues: MemoryQueues,
    settings: QueueSettings,
    room: u64,
}

impl Door {
    fn new(size: u64, max_age_ns: u64) -> Self {
        Self {
            queues: MemoryQueues::default(),
            settings: QueueSettings {
                limit: 7,
                size,
                max_age_ns,
            },
            room: 0,
        }
    }

    /// Has a client try at a time, in milliseconds; returns whether it is let in.
    fn tries(&self, client: u64, at_ms: u64) -> bool {
        self.turn(client, at_ms) == Turn::Now
    }

    fn turn(&self, client: u64, at_ms: u64) -> Turn {
        let now_ns = at_ms * 1_000_000;
        let opening_id = OpeningId(client);
        turn(
            &self.queues,
            &self.settings,
            COUNT_ID,
            opening_id,
            self.room,
            now_ns,
        )
    }

    /// A client is let in, and its connection is established.
    fn enters(&mut self, client: u64, at_ms: u64) {
        assert!(self.tries(client, at_ms), "{client} is let in");
        let opening_id = OpeningId(client);
        established(&self.queues, &self.settings, opening_id, at_ms * 1_000_000);
        self.room -= 1;
    }

    /// Clients wait, each since its number in seconds before 100 s.
    fn with_waiting(mut self, clients: u64) -> Self {
        for client in 1..=clients {
            assert!(!self.tries(client, 100_000 + client));
        }
        for client in 1..=clients {
            assert!(!self.tries(client, 101_000 + client));
        }
        self.room = 0;
        self
    }

    fn count(&self, event: QueueEvent) -> u64 {
        self.queues.traffic(7).count(event)
    }

    fn in_line(&self) -> usize {
        self.queues.waiting()
    }
}

#[test]
fn there_is_no_line_while_there_is_room() {
    let mut door = Door::new(10, 0);
    door.room = 2;
    door.enters(1, 1000);
    door.enters(2, 1001);
    assert!(!door.tries(3, 1002));
    assert_eq!(door.in_line(), 0, "a first try takes no ticket");
}

#[test]
fn a_ticket_takes_a_second_try_that_a_client_would_make() {
    let door = Door::new(10, 0);
    assert!(!door.tries(1, 1000));
    assert!(
        !door.tries(1, 1001),
        "who does not wait for an answer may be forged"
    );
    assert_eq!(door.in_line(), 0);
    assert!(!door.tries(1, 2000));
    assert_eq!((door.in_line(), door.count(QueueEvent::Queued)), (1, 1));
    assert!(!door.tries(2, 3000));
    assert!(!door.tries(2, 16_000), "it is a first try again");
    assert_eq!(door.count(QueueEvent::Queued), 1);
}

#[test]
fn the_oldest_ticket_is_let_in_first() {
    let mut door = Door::new(10, 0).with_waiting(3);
    door.room = 1;
    assert!(!door.tries(3, 102_000), "two are ahead");
    assert!(!door.tries(9, 102_001), "all are ahead");
    assert!(!door.tries(2, 102_002));
    door.enters(1, 102_003);
    door.room = 1;
    assert!(!door.tries(3, 102_004));
    door.enters(2, 102_005);
    door.room = 1;
    door.enters(3, 102_006);
    assert_eq!(door.count(QueueEvent::Resumed), 3);
    let traffic = door.queues.traffic(7);
    assert_eq!(
        traffic.waits[2], 3,
        "each waited for two seconds: {traffic:?}"
    );
    door.room = 1;
    assert!(door.tries(9, 102_007), "nobody waits any more");
}

#[test]
fn as_many_enter_in_any_order_as_there_is_room_for() {
    let mut door = Door::new(10, 0).with_waiting(4);
    door.room = 3;
    assert!(!door.tries(4, 102_000));
    door.enters(3, 102_001);
    assert!(!door.tries(4, 102_002), "the slots left are reserved");
    door.enters(1, 102_003);
    door.enters(2, 102_004);
}

#[test]
fn who_gives_up_holds_nobody_up_for_longer_than_its_retry_takes() {
    let mut door = Door::new(10, 0).with_waiting(2);
    door.room = 1;
    // The first client's ticket lasts until two seconds and one after its last try.
    assert!(!door.tries(2, 104_000));
    door.enters(2, 104_100);
    assert_eq!(door.count(QueueEvent::Expired), 1);
    assert_eq!(door.in_line(), 0);
}

#[test]
fn a_client_that_is_turned_away_for_its_age_begins_anew() {
    let mut door = Door::new(10, 3 * SECOND).with_waiting(1);
    assert!(!door.tries(1, 103_000));
    assert!(!door.tries(1, 103_100), "it is too old");
    assert_eq!((door.in_line(), door.count(QueueEvent::Expired)), (0, 1));
    door.room = 1;
    assert!(door.tries(1, 103_200));
}

#[test]
fn a_full_line_takes_nobody() {
    let door = Door::new(2, 0).with_waiting(4);
    assert_eq!(door.in_line(), 2);
    assert_eq!(door.count(QueueEvent::Queued), 2);
    assert_eq!(door.count(QueueEvent::Rejected), 2);
}

#[test]
fn first_tries_by_the_million_take_no_ticket() {
    let door = Door::new(2, 0);
    for client in 0..100_000 {
        assert!(!door.tries(client, 1000 + client / 1000));
    }
    assert_eq!(door.in_line(), 0);
    assert_eq!(door.count(QueueEvent::Rejected), 0);
}

#[test]
fn a_long_line_of_those_who_gave_up_is_swept() {
    let mut door = Door::new(1000, 0).with_waiting(100);
    let now_ns = 200 * SECOND;
    let mut left = Vec::new();
    while left.last() != Some(&0) {
        left.push(
            door.queues
                .ahead(&door.settings, COUNT_ID, u64::MAX, now_ns),
        );
        assert!(left.len() < 10, "{left:?}");
    }
    assert_eq!(door.count(QueueEvent::Expired), 100);
    door.room = 1;
    assert!(door.tries(1000, 201_000));
}

#[test]
fn waits_are_counted_by_their_seconds() {
    let index = QueueTraffic::wait_index;
    assert_eq!(index(0), 0);
    assert_eq!(index(SECOND), 0);
    assert_eq!(index(SECOND + 1), 1);
    assert_eq!(index(2 * SECOND), 1);
    assert_eq!(index(3 * SECOND), 2);
    assert_eq!(index(512 * SECOND), 9);
    assert_eq!(index(513 * SECOND), WAITS - 1);
    assert_eq!(index(u64::MAX), WAITS - 1);
}

#[test]
fn times_between_tries_may_double() {
    let ticket = Ticket::new(OpeningId(1), SECOND, 10 * SECOND);
    assert_eq!(ticket.first_ns, 9 * SECOND);
    assert!(!ticket.is_expired(0, 13 * SECOND));
    assert!(ticket.is_expired(0, 13 * SECOND + 1));
    let again = ticket.tried_again(12 * SECOND);
    assert!(!again.is_expired(0, 17 * SECOND));
    assert!(again.is_expired(0, 17 * SECOND + 1));
    assert_eq!(again.first_ns, 9 * SECOND);
}
