//! The law in front of simulated servers.

use proptest::prelude::*;

use super::*;

const STEPS_A_SECOND: u64 = 4;

/// A server that takes `capacity` packets a second out of a queue that holds `room`.
#[derive(Clone, Copy, Debug)]
struct Server {
    capacity: u64,
    room: u64,
    queued: u64,
}

/// The packets in front of the server during some intervals.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    admitted: u64,
    lost: u64,
    intervals_with_loss: u64,
}

impl Server {
    const fn new(capacity: u64, room: u64) -> Self {
        Self {
            capacity,
            room,
            queued: 0,
        }
    }

    /// Takes an interval's packets; returns how many are lost. In slices of a tenth, as the queue does not wait for
    /// the interval's end.
    fn take(&mut self, packets: u64) -> u64 {
        const SLICES: u64 = 10;
        let mut lost = 0;
        for slice in 0..SLICES {
            let part = |whole: u64| whole * (slice + 1) / SLICES - whole * slice / SLICES;
            self.queued += part(packets);
            self.queued = self
                .queued
                .saturating_sub(part(self.capacity / STEPS_A_SECOND));
            lost += self.queued.saturating_sub(self.room);
            self.queued = self.queued.min(self.room);
        }
        lost
    }
}

/// Runs the law for some seconds while `offered` packets a second arrive.
fn run(law: &mut Law, server: &mut Server, offered: u64, seconds: u64) -> Sums {
    let mut sums = Sums::default();
    for _ in 0..seconds * STEPS_A_SECOND {
        let admitted = law.rate().min(offered) / STEPS_A_SECOND;
        let lost = server.take(admitted);
        sums.admitted += admitted;
        sums.lost += lost;
        sums.intervals_with_loss += u64::from(lost > 0);
        let rate = law.step(Interval {
            is_overloaded: lost > 0,
            refused: law.rate() < offered,
        });
        let Bounds { floor, ceiling } = law.bounds;
        assert!((floor..=ceiling).contains(&rate), "{rate}");
    }
    sums
}

/// Runs the law while a flood comes in pulses: in one interval of `every`. Each begins with a burst, as the limit's
/// bucket has gathered the tokens of a tenth of a second.
fn run_pulses(law: &mut Law, server: &mut Server, every: u64, pulses: u64) -> Sums {
    const BURSTS_A_SECOND: u64 = 10;
    let mut sums = Sums::default();
    for interval in 0..pulses * every {
        let comes = interval % every == 0;
        let mut lost = 0;
        if comes {
            let burst = law.rate() / BURSTS_A_SECOND;
            let admitted = law.rate() / STEPS_A_SECOND;
            server.queued += burst;
            lost += server.queued.saturating_sub(server.room);
            server.queued = server.queued.min(server.room);
            lost += server.take(admitted);
            sums.admitted += burst + admitted;
        } else {
            server.take(0);
        }
        sums.lost += lost;
        sums.intervals_with_loss += u64::from(lost > 0);
        law.step(Interval {
            is_overloaded: lost > 0,
            refused: comes,
        });
    }
    sums
}

const FLOOD: u64 = 10_000_000;
const BOUNDS: Bounds = Bounds {
    floor: 1000,
    ceiling: 1_000_000,
};

proptest! {
    /// For any capacity between the bounds and any length of the queue: the rate finds the capacity within ten
    /// seconds, then uses nearly all of it, and loses next to nothing.
    #[test]
    fn it_finds_what_the_server_bears(
        capacity in 2000_u64..900_000,
        room_ms in 1_u64..200,
    ) {
        let mut law = Law::new(BOUNDS);
        let mut server = Server::new(capacity, (capacity * room_ms / 1000).max(1));
        run(&mut law, &mut server, FLOOD, 10);
        let sums = run(&mut law, &mut server, FLOOD, 120);
        let borne = capacity * 120;
        prop_assert!(sums.admitted >= borne * 85 / 100, "{sums:?} of {borne}");
        prop_assert!(sums.admitted <= borne * 101 / 100, "{sums:?} of {borne}");
        prop_assert!(sums.lost * 200 <= sums.admitted, "{sums:?}");
    }

    /// A flood that comes in pulses lowers the rate to three quarters of the server's capacity, or of ten times its
    /// queue, which then holds the burst; and no lower.
    #[test]
    fn pulses_lower_the_rate_no_further_than_the_queue_does(
        capacity in 20_000_u64..400_000,
        room_ms in 5_u64..200,
        every in 2_u64..20,
    ) {
        let room = capacity * room_ms / 1000;
        let mut law = Law::new(BOUNDS);
        let mut server = Server::new(capacity, room);
        run_pulses(&mut law, &mut server, every, 500);
        let borne = capacity.min(10 * room);
        for _ in 0..200 {
            let sums = run_pulses(&mut law, &mut server, every, 1);
            prop_assert!(law.rate() >= borne * 3 / 4, "{} of {borne}, {sums:?}", law.rate());
        }
        let sums = run_pulses(&mut law, &mut server, every, 500);
        prop_assert!(sums.lost * 100 <= sums.admitted, "{sums:?}");
    }

    /// The rate follows a slowing server within three seconds for each halving, and uses a faster one again.
    #[test]
    fn it_follows_a_server_that_changes(
        capacity in 20_000_u64..400_000,
        part in 2_u64..10,
    ) {
        let room = capacity / 50;
        let mut law = Law::new(BOUNDS);
        let mut server = Server::new(capacity, room);
        run(&mut law, &mut server, FLOOD, 20);
        server.capacity = capacity / part;
        run(&mut law, &mut server, FLOOD, 3 * u64::from(part.ilog2() + 1));
        let slow = run(&mut law, &mut server, FLOOD, 60);
        prop_assert!(slow.lost * 100 <= slow.admitted, "{slow:?}");
        server.capacity = capacity;
        let until_found = part * STEPS / STEPS_A_SECOND + 10;
        run(&mut law, &mut server, FLOOD, until_found);
        let fast = run(&mut law, &mut server, FLOOD, 60);
        prop_assert!(fast.admitted >= capacity * 60 * 80 / 100, "{fast:?}");
    }
}

#[test]
fn the_rate_stays_while_the_limit_refuses_nobody() {
    let mut law = Law::new(BOUNDS);
    let mut server = Server::new(50_000, 1000);
    run(&mut law, &mut server, FLOOD, 30);
    let found = law.rate();
    run(&mut law, &mut server, 100, 3600);
    assert_eq!(law.rate(), found);
}

/// The rate stays at the floor under a server of less capacity, and at the ceiling under one of more.
#[test]
fn the_bounds_hold() {
    let mut law = Law::new(BOUNDS);
    run(&mut law, &mut Server::new(10, 1), FLOOD, 60);
    assert_eq!(law.rate(), BOUNDS.floor);
    run(&mut law, &mut Server::new(FLOOD, 1), FLOOD, 3600);
    assert_eq!(law.rate(), BOUNDS.ceiling);
}

/// Overload for another reason than the limit's packets takes the rate to the floor in seconds, and it comes back
/// from there.
#[test]
fn an_overload_that_does_not_end_leads_to_the_floor() {
    let mut law = Law::new(BOUNDS);
    run(&mut law, &mut Server::new(500_000, 10_000), FLOOD, 30);
    let overload = Interval {
        is_overloaded: true,
        refused: true,
    };
    for _ in 0..30 * STEPS_A_SECOND {
        law.step(overload);
    }
    assert_eq!(law.rate(), BOUNDS.floor);
    let mut server = Server::new(500_000, 10_000);
    let found = run(&mut law, &mut server, FLOOD, 3600);
    assert!(law.rate() > 390_000, "{} {found:?}", law.rate());
}

/// A queue hides for a while that the rate has doubled to three times the capacity. Four seconds after the start the
/// rate is below it; without halving, in steps of a fifth, it took two more.
#[test]
fn what_doubling_let_in_too_much_ends_soon() {
    let mut law = Law::new(Bounds {
        floor: 10_000,
        ceiling: 200_000,
    });
    let mut server = Server::new(50_000, 20_000);
    run(&mut law, &mut server, FLOOD, 1);
    assert_eq!(law.rate(), 160_000);
    run(&mut law, &mut server, FLOOD, 3);
    assert!((40_000..=50_000).contains(&law.rate()), "{}", law.rate());
}

/// A flood begins with a burst, which a small queue loses at any rate.
#[test]
fn overload_at_the_floor_says_nothing_of_higher_rates() {
    let mut law = Law::new(Bounds {
        floor: 1_000,
        ceiling: 64_000,
    });
    law.step(Interval {
        is_overloaded: true,
        refused: true,
    });
    let mut server = Server::new(20_000, 1_000);
    run(&mut law, &mut server, 300_000, 3);
    assert!(law.rate() > 10_000, "{}", law.rate());
}
