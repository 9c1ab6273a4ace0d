//! The world: true time, nodes with clocks of their own, and a network.

use std::{cmp::Reverse, collections::BinaryHeap};

use fastrand::Rng;
use limiter_fleet::{Ask, Boot, Loan, Members, Node, NodeId, Share, Stakes, Terms};

use super::bucket::{Budget, NodeBucket, Whole};

const MS: u64 = 1_000_000;

/// How often packets come, and how often a node asks.
const STEP_MS: u64 = 5;
const TICK_MS: u64 = 200;

/// By how much a clock may run faster or slower than true time, in millionths.
const DRIFT_PPM: i64 = 499;

/// What may go wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// How many of a hundred messages are lost, come twice, or come seconds late.
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) late: u64,
    /// After how many of a hundred messages an old one comes once more.
    pub(crate) replayed: u64,
    /// How often, in a thousand ticks of a node, it crashes, stalls, or is cut off.
    pub(crate) crashed: u64,
    pub(crate) stalled: u64,
    pub(crate) cut_off: u64,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        lost: 0,
        repeated: 0,
        late: 0,
        replayed: 0,
        crashed: 0,
        stalled: 0,
        cut_off: 0,
    };

    pub(crate) const EVERY: Self = Self {
        lost: 15,
        repeated: 10,
        late: 5,
        replayed: 10,
        crashed: 5,
        stalled: 5,
        cut_off: 5,
    };
}

#[derive(Clone, Copy, Debug)]
enum Message {
    Ask(Ask),
    Loan(Loan),
}

impl Message {
    const fn ends(&self) -> [NodeId; 2] {
        match self {
            Self::Ask(ask) => [ask.from, ask.to],
            Self::Loan(loan) => [loan.from, loan.to],
        }
    }
}

struct Host {
    node: Node,
    bucket: NodeBucket,
    boot: u64,
    offset: u64,
    drift_ppm: i64,
    terms: Terms,
    /// In tokens a second.
    demand: u64,
    /// What has come of a token.
    rest: u64,
    /// No daemon runs, it does nothing, or nothing reaches it, until these times.
    down_until: Option<u64>,
    stalled_until: u64,
    cut_until: u64,
    admitted: u64,
}

impl Host {
    fn local(&self, now: u64) -> u64 {
        let drift = i128::from(now) * i128::from(self.drift_ppm) / 1_000_000;
        let local = i128::from(self.offset) + i128::from(now) + drift;
        u64::try_from(local).expect("clocks begin late")
    }
}

pub(crate) struct World {
    rng: Rng,
    faults: Faults,
    stakes: Stakes,
    budget: Budget,
    whole: Whole,
    hosts: Vec<Host>,
    now: u64,
    /// By when they arrive and their number.
    under_way: BinaryHeap<Reverse<(u64, u64)>>,
    /// All that were ever sent.
    sent: Vec<Message>,
    taken: u64,
    demands_change: bool,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = Rng::with_seed(seed);
        let count = rng.usize(1..12);
        let budget = Budget {
            burst: rng.u64(1_000..2_000_000),
            rate: rng.u64(1_000..2_000_000),
        };
        let mut world = Self::of(rng, count, budget, faults);
        world.demands_change = true;
        world
    }

    /// Has a node begin anew with other terms than the rest.
    pub(crate) fn differs(&mut self, node: usize, terms: Terms) {
        self.hosts[node].terms = terms;
        self.hosts[node].down_until = Some(0);
    }

    /// A world of so many nodes without faults.
    pub(crate) fn quiet(seed: u64, count: usize, budget: Budget) -> Self {
        let rng = Rng::with_seed(seed);
        Self::of(rng, count, budget, Faults::NONE)
    }

    fn of(mut rng: Rng, count: usize, budget: Budget, faults: Faults) -> Self {
        let members = Members::new((0..count).map(|number| format!("node-{number}")));
        let stakes = members.expect("names").stakes(b"All");
        let hosts = (0..count).map(|number| {
            let id = NodeId(u32::try_from(number).expect("few"));
            let offset = rng.u64(1_000_000_000_000..1_000_000_000_000_000);
            let drift_ppm = rng.i64(-DRIFT_PPM..=DRIFT_PPM);
            let terms = Terms::DEFAULT;
            Host {
                node: Node::new(&stakes, id, Boot(1), terms, offset),
                bucket: NodeBucket::new(budget, stakes.floor(), offset),
                boot: 1,
                offset,
                drift_ppm,
                terms,
                demand: 0,
                rest: 0,
                down_until: None,
                stalled_until: 0,
                cut_until: 0,
                admitted: 0,
            }
        });
        Self {
            faults,
            hosts: hosts.collect(),
            stakes,
            budget,
            whole: Whole::new(budget, DRIFT_PPM.unsigned_abs()),
            now: 0,
            under_way: BinaryHeap::new(),
            sent: Vec::new(),
            taken: 0,
            demands_change: false,
            rng,
        }
    }

    /// Returns how many loans have grown a node's share.
    pub(crate) const fn loans_taken(&self) -> u64 {
        self.taken
    }

    /// Returns how many messages were sent.
    pub(crate) fn messages(&self) -> usize {
        self.sent.len()
    }

    /// Has packets come to a node, so many a second.
    pub(crate) fn demand(&mut self, node: usize, tokens: u64) {
        self.hosts[node].demand = tokens;
    }

    /// Cuts all nodes off from each other.
    pub(crate) fn cut_all(&mut self, ms: u64) {
        let until = self.now + ms * MS;
        for host in &mut self.hosts {
            host.cut_until = until;
        }
    }

    /// Returns how many tokens a node has admitted since it was last asked for.
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
                // Not all at once.
                if (step + number as u64 * 7).is_multiple_of(TICK_MS / STEP_MS) {
                    self.tick(number);
                }
            }
        }
    }

    /// Has what has arrived by now be heard.
    fn deliver(&mut self) {
        while let Some(Reverse((at, number))) = self.under_way.peek().copied() {
            if at > self.now {
                break;
            }
            self.under_way.pop();
            let message = self.sent[usize::try_from(number).expect("few")];
            let [from, to] = message.ends().map(|node| node.0 as usize);
            if self.hosts[from].cut_until > self.now || self.hosts[to].cut_until > self.now {
                continue;
            }
            let host = &mut self.hosts[to];
            if host.down_until.is_some() {
                continue;
            }
            if host.stalled_until > self.now {
                self.under_way.push(Reverse((host.stalled_until, number)));
                continue;
            }
            let local = host.local(self.now);
            match message {
                Message::Ask(ask) => {
                    let loan = host.node.hear_ask(local, &ask, &mut host.bucket);
                    host.bucket.ends(host.node.in_force(local).until);
                    if let Some(loan) = loan {
                        self.send(Message::Loan(loan));
                    }
                }
                Message::Loan(loan) => {
                    let before = host.node.in_force(local).share;
                    host.node.hear_loan(local, &loan, &mut host.bucket);
                    let after = host.node.in_force(local);
                    host.bucket.ends(after.until);
                    self.taken += u64::from(after.share > before);
                }
            }
        }
    }

    fn send(&mut self, message: Message) {
        self.sent.push(message);
        let number = self.sent.len() as u64 - 1;
        let happens = |rng: &mut Rng, percent| rng.u64(0..100) < percent;
        if !happens(&mut self.rng, self.faults.lost) {
            let most = if happens(&mut self.rng, self.faults.late) {
                5_000
            } else {
                40
            };
            let delay = self.rng.u64(1..most);
            self.under_way
                .push(Reverse((self.now + delay * MS, number)));
        }
        if happens(&mut self.rng, self.faults.repeated) {
            let delay = self.rng.u64(1..5_000);
            self.under_way
                .push(Reverse((self.now + delay * MS, number)));
        }
        if happens(&mut self.rng, self.faults.replayed) {
            let old = self.rng.u64(0..=number);
            self.under_way.push(Reverse((self.now + MS, old)));
        }
    }

    /// Has a node's packets of one step come.
    fn packets(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        host.rest += host.demand * STEP_MS;
        let local = host.local(self.now);
        while host.rest >= 1_000 {
            host.rest -= 1_000;
            if host.bucket.admit(local) {
                host.admitted += 1;
                assert!(
                    self.whole.take(self.now),
                    "above the budget at {} ms, by node {number}",
                    self.now / MS
                );
            }
        }
    }

    fn tick(&mut self, number: usize) {
        self.fail(number);
        let now = self.now;
        let rate = self.budget.rate;
        let host = &mut self.hosts[number];
        let local = host.local(now);
        if let Some(until) = host.down_until {
            if until > now {
                return;
            }
            host.down_until = None;
            host.boot += 1;
            let id = NodeId(u32::try_from(number).expect("few"));
            let boot = Boot(host.boot);
            host.node = Node::new(&self.stakes, id, boot, host.terms, local);
            host.node.settle(local, &mut host.bucket);
            host.bucket.ends(None);
        }
        if host.stalled_until > now {
            return;
        }
        // A quarter more than comes, so that what comes unevenly passes, too.
        let wanted = host.demand * 1_000 * 5 / 4;
        let share = u128::from(wanted) * 1_000_000_000 / u128::from(rate);
        let share = Share::billionths(u64::try_from(share).unwrap_or(u64::MAX));
        let asks = host.node.ask(local, share, &mut host.bucket);
        host.bucket.ends(host.node.in_force(local).until);
        for ask in asks {
            self.send(Message::Ask(ask));
        }
    }

    /// Has something go wrong with a node.
    fn fail(&mut self, number: usize) {
        let (now, faults) = (self.now, self.faults);
        let mut happens = |permille: u64| self.rng.u64(0..1_000) < permille;
        let [crashes, stalls, is_cut] =
            [faults.crashed, faults.stalled, faults.cut_off].map(&mut happens);
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
        if changes {
            let whole = self.budget.rate / 1_000 + 1;
            host.demand = if self.rng.bool() {
                self.rng.u64(0..3 * whole)
            } else {
                0
            };
        }
    }
}
