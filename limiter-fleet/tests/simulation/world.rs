//! The world: true time, hosts with their own clocks, a store, and keys with a budget each.

use std::{cmp::Reverse, collections::BinaryHeap};

use fastrand::Rng;
use limiter_fleet::{
    Share,
    lease::{ARBITER, Call, CallId, Reply},
};

use super::{
    bucket::{Budget, Whole},
    faults::Faults,
    host::Host,
    store::Store,
};

pub(crate) const MS: u64 = 1_000_000;

/// How often packets come, how often a node polls, and how long it waits for a reply.
const STEP_MS: u64 = 5;
const TICK_MS: u64 = 200;
const PATIENCE_MS: u64 = 500;

/// How much faster or slower than true time a clock may run, in millionths.
const DRIFT_PPM: i64 = 499;

/// One step of the store's clock is covered, not several at once.
const CLOCK_PAUSE_MS: u64 = 10_000;

/// The most that a step of the store's clock fills early, in nanoseconds: `STEP_MS` of the script.
const CLOCK_STEP_NS: u64 = 1_500 * MS;

enum Message {
    Call(usize, CallId, Vec<Vec<u8>>),
    Reply(usize, CallId, Reply),
}

pub(crate) struct World {
    rng: Rng,
    faults: Faults,
    /// The single bucket that each key would have without a fleet.
    wholes: Vec<Whole>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) store: Store,
    now: u64,
    /// By arrival time, with the index of the message.
    under_way: BinaryHeap<Reverse<(u64, usize)>>,
    messages: Vec<Option<Message>>,
    /// Each host's open call, and when it was sent.
    open: Vec<Option<(u64, CallId)>>,
    budget: Budget,
    calls: u64,
    clock_set_at: u64,
    kept_at: u64,
    demands_change: bool,
    /// Whether nearly all nodes demand more than the budget: then a share given twice is used at once.
    is_greedy: bool,
}

impl World {
    /// A world with faults, from a seed. `script` divides the budgets.
    pub(crate) fn new(seed: u64, faults: Faults, script: &str) -> Self {
        let mut rng = Rng::with_seed(seed);
        let count = rng.usize(1..12);
        let keys = rng.usize(1..5);
        let rate = rng.u64(1_000..2_000_000);
        let burst = if rng.bool() {
            rng.u64(1_000..2_000_000)
        } else {
            // A large burst would hide a double share for a while.
            (rate / rng.u64(2..50)).max(20_000)
        };
        let mut world = Self::of(rng, (count, keys), Budget { burst, rate }, faults, script);
        world.demands_change = true;
        world.is_greedy = world.rng.u8(0..3) == 0;
        world
    }

    /// A world without faults and with one key.
    pub(crate) fn quiet(seed: u64, count: usize, budget: Budget) -> Self {
        Self::of(
            Rng::with_seed(seed),
            (count, 1),
            budget,
            Faults::NONE,
            ARBITER,
        )
    }

    fn of(
        mut rng: Rng,
        (count, keys): (usize, usize),
        budget: Budget,
        faults: Faults,
        script: &str,
    ) -> Self {
        let most_nodes = u32::try_from(count).expect("few");
        let has_rivals = faults.rivals && rng.u8(0..4) == 0;
        let hosts = (0..count).map(|number| {
            let offset = rng.u64(1_000_000_000_000..1_000_000_000_000_000);
            let drift_ppm = rng.i64(-DRIFT_PPM..=DRIFT_PPM);
            let name = if has_rivals { number / 2 } else { number };
            Host::new(
                &format!("node-{name}"),
                most_nodes,
                keys,
                budget,
                (offset, drift_ppm),
            )
        });
        Self {
            faults,
            hosts: hosts.collect(),
            store: Store::new(script, 1_000_000_000_000_000),
            wholes: vec![Whole::new(budget, DRIFT_PPM.unsigned_abs()); keys],
            now: 0,
            under_way: BinaryHeap::new(),
            messages: Vec::new(),
            open: vec![None; count],
            budget,
            calls: 0,
            clock_set_at: 0,
            kept_at: 0,
            demands_change: false,
            is_greedy: false,
            rng,
        }
    }

    /// The calls that the store has answered.
    pub(crate) const fn calls(&self) -> u64 {
        self.calls
    }

    pub(crate) fn sum(&self, count: impl Fn(&Host) -> u64) -> u64 {
        self.hosts.iter().map(count).sum()
    }

    /// Sets a node's demand of the first key, in tokens a second.
    pub(crate) fn demand(&mut self, node: usize, tokens: u64) {
        self.hosts[node].parts[0].demand = tokens;
    }

    pub(crate) fn cut_all(&mut self, ms: u64) {
        for host in &mut self.hosts {
            host.cut_until = self.now + ms * MS;
        }
    }

    /// Stops a node for good; its programs go on.
    pub(crate) fn stop(&mut self, node: usize) {
        self.hosts[node].down_until = Some(u64::MAX);
    }

    /// Returns how many tokens a node has admitted since the last call.
    pub(crate) fn admitted(&mut self, node: usize) -> u64 {
        std::mem::take(&mut self.hosts[node].admitted)
    }

    pub(crate) fn run_for(&mut self, ms: u64) {
        let end = self.now + ms * MS;
        while self.now < end {
            self.now += STEP_MS * MS;
            self.deliver();
            let step = self.now / (STEP_MS * MS);
            for number in 0..self.hosts.len() {
                self.packets(number);
                // Nodes do not tick all at once.
                if (step + number as u64 * 7).is_multiple_of(TICK_MS / STEP_MS) {
                    self.tick(number);
                }
            }
            self.check_shares();
        }
    }

    /// Checks that the programs' shares add up to at most the whole: an excess shows sooner here than in admitted
    /// packets.
    fn check_shares(&mut self) {
        for key in 0..self.wholes.len() {
            let hosts = self.hosts.iter_mut();
            let shares = hosts.map(|host| {
                let local = host.local(self.now);
                host.check(local);
                host.parts[key].bucket.share(local).in_billionths()
            });
            let all: u64 = shares.sum();
            assert!(
                all <= Share::WHOLE.in_billionths(),
                "shares above the budget at {} ms: {all}",
                self.now / MS
            );
        }
    }

    /// Delivers the messages that have arrived by now.
    fn deliver(&mut self) {
        while let Some(Reverse((at, index))) = self.under_way.peek().copied() {
            if at > self.now {
                break;
            }
            self.under_way.pop();
            match self.messages[index].take().expect("once") {
                Message::Call(from, number, arguments) => {
                    self.calls += 1;
                    let reply = self.store.call(self.now, &arguments);
                    self.send(Message::Reply(from, number, reply));
                }
                Message::Reply(to, number, reply) => {
                    let host = &mut self.hosts[to];
                    if host.down_until.is_some() || host.cut_until > self.now {
                        continue;
                    }
                    if host.stalled_until > self.now {
                        self.messages[index] = Some(Message::Reply(to, number, reply));
                        self.under_way.push(Reverse((host.stalled_until, index)));
                        continue;
                    }
                    let local = host.local(self.now);
                    host.receive(local, number, &reply);
                }
            }
        }
    }

    fn send(&mut self, message: Message) {
        if self.rng.u64(0..100) < self.faults.lost {
            return;
        }
        let is_late = self.rng.u64(0..100) < self.faults.late;
        let delay = self.rng.u64(1..if is_late { 5_000 } else { 10 });
        self.messages.push(Some(message));
        self.under_way
            .push(Reverse((self.now + delay * MS, self.messages.len() - 1)));
    }

    /// Sends the packets of one step to a node.
    fn packets(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let local = host.local(self.now);
        for (part, whole) in host.parts.iter_mut().zip(&mut self.wholes) {
            part.rest += part.demand * STEP_MS;
            while part.rest >= 1_000 {
                part.rest -= 1_000;
                if part.bucket.admit(local) {
                    host.admitted += 1;
                    assert!(
                        whole.take(self.now),
                        "above the budget at {} ms, by node {number}",
                        self.now / MS
                    );
                }
            }
        }
    }

    fn tick(&mut self, number: usize) {
        self.fail_store();
        self.fail(number);
        let now = self.now;
        let host = &mut self.hosts[number];
        let local = host.local(now);
        if let Some(until) = host.down_until {
            if until > now {
                return;
            }
            host.start(local);
            self.open[number] = None;
        }
        if host.stalled_until > now {
            return;
        }
        let late = self.open[number].take_if(|(sent, _)| now >= *sent + PATIENCE_MS * MS);
        if let Some((_, call)) = late {
            host.give_up(call);
        }
        if let Some(Call {
            id: call,
            arguments,
        }) = host.tick(local)
        {
            self.open[number] = Some((now, call));
            if host.cut_until <= now {
                let run = self.store.run().into_bytes();
                let arguments = [run].into_iter().chain(arguments).collect();
                self.send(Message::Call(number, call, arguments));
            }
        }
    }

    /// Makes random faults happen to the store.
    fn fail_store(&mut self) {
        let now = self.now;
        if now > self.kept_at + 1_000 * MS {
            self.store.order("keep", "");
            self.kept_at = now;
        }
        if self.rng.u64(0..1_000) < self.faults.restarted {
            match self.rng.u8(0..4) {
                0 => self.store.order("restart", "all"),
                1 => self.store.order("restart", "kept"),
                2 => self.store.order("restart", "none"),
                _ => self.store.order("flush", ""),
            }
        }
        let may_set = now > self.clock_set_at + CLOCK_PAUSE_MS * MS;
        if may_set && self.rng.u64(0..1_000) < self.faults.clock_set {
            self.clock_set_at = now;
            let step = self.rng.i64(-20_000_000_000..20_000_000_000);
            self.store.offset += step;
            if step > 0 {
                for whole in &mut self.wholes {
                    whole.gain(CLOCK_STEP_NS.min(step.unsigned_abs()));
                }
            }
        }
    }

    /// Makes random faults happen to a node.
    fn fail(&mut self, number: usize) {
        let (now, faults) = (self.now, self.faults);
        let mut happens = |permille: u64| self.rng.u64(0..1_000) < permille;
        let [crashes, stalls, is_cut, is_refused] = [
            faults.crashed,
            faults.stalled,
            faults.cut_off,
            faults.refused,
        ]
        .map(&mut happens);
        let changes = self.demands_change && happens(50);
        let mut later = |most_ms| now + self.rng.u64(1..most_ms) * MS;
        let host = &mut self.hosts[number];
        if crashes && host.down_until.is_none() {
            host.down_until = Some(later(6_000));
        }
        if stalls {
            host.stalled_until = later(6_000);
        }
        if is_cut {
            host.cut_until = later(8_000);
        }
        if is_refused {
            host.begin_again();
        }
        if changes {
            let whole = self.budget.rate / 1_000 + 1;
            let part = self.rng.usize(0..host.parts.len());
            host.parts[part].demand = match self.rng.u8(0..10) {
                1.. if self.is_greedy => 3 * whole,
                0..5 => 0,
                5..8 => self.rng.u64(0..3 * whole),
                8.. => 3 * whole,
            };
        }
    }
}
