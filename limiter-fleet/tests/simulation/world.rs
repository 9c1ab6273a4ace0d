//! The world: true time, nodes with their own clocks, a network, and owners with a budget each.

use std::{cmp::Reverse, collections::BinaryHeap};

use fastrand::Rng;
use limiter_fleet::{Boot, Header, Members, NodeId, Relevance, Share, Terms};

use super::{
    bucket::{Budget, Whole},
    faults::Faults,
    host::{Content, Host, Owners},
};

pub(crate) const MS: u64 = 1_000_000;

/// How often packets come, and how often a node polls.
const STEP_MS: u64 = 5;
const TICK_MS: u64 = 200;

/// How much faster or slower than true time a clock may run, in millionths.
const DRIFT_PPM: i64 = 499;

/// A message with a single payload.
type Message = (Header, Content);

pub(crate) struct World {
    rng: Rng,
    faults: Faults,
    owners: Owners,
    /// The single bucket that each owner would have without a fleet.
    wholes: Vec<Whole>,
    hosts: Vec<Host>,
    now: u64,
    /// By arrival time, with the index of the message.
    under_way: BinaryHeap<Reverse<(u64, u64)>>,
    /// All messages ever sent.
    sent: Vec<Message>,
    taken: u64,
    renewed: u64,
    demands_change: bool,
    /// Whether nearly all nodes demand more than the budget: then a share given twice is used at once.
    is_greedy: bool,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = Rng::with_seed(seed);
        let count = rng.usize(1..12);
        let owners = rng.usize(1..5);
        let rate = rng.u64(1_000..2_000_000);
        let burst = if rng.bool() {
            rng.u64(1_000..2_000_000)
        } else {
            // A large burst would hide a double share for a while.
            (rate / rng.u64(2..50)).max(20_000)
        };
        let budget = Budget { burst, rate };
        let members = members(count);
        let members = match rng.usize(0..4) {
            // While nodes join.
            0 => Members::between(members, self::members(count + rng.usize(1..12))).expect("some"),
            _ => members,
        };
        // With terms of more nodes, loans last longer.
        let terms = match rng.u8(0..6) {
            0 => Terms::among(200),
            _ => members.terms(),
        };
        let mut world = Self::of(rng, (&members, terms), owners, budget, faults);
        world.demands_change = true;
        world.is_greedy = world.rng.u8(0..3) == 0;
        world
    }

    /// Restarts a node with terms that differ from the rest.
    pub(crate) fn differs(&mut self, node: usize, terms: Terms) {
        self.hosts[node].terms = terms;
        self.hosts[node].down_until = Some(0);
    }

    /// Lets all nodes skip the silent time after a start.
    pub(crate) fn begin_early(&mut self) {
        for host in &mut self.hosts {
            host.silent_ns = 0;
        }
    }

    /// A world without faults and with one owner.
    pub(crate) fn quiet(seed: u64, count: usize, budget: Budget) -> Self {
        let rng = Rng::with_seed(seed);
        let members = members(count);
        let terms = members.terms();
        Self::of(rng, (&members, terms), 1, budget, Faults::NONE)
    }

    fn of(
        mut rng: Rng,
        (members, terms): (&Members, Terms),
        owners: usize,
        budget: Budget,
        faults: Faults,
    ) -> Self {
        let owners = Owners::new(members, terms, owners, budget);
        let hosts = (0..members.count()).map(|number| {
            let id = NodeId(number);
            let offset = rng.u64(1_000_000_000_000..1_000_000_000_000_000);
            let drift_ppm = rng.i64(-DRIFT_PPM..=DRIFT_PPM);
            Host::new(id, offset, drift_ppm, &owners)
        });
        Self {
            faults,
            hosts: hosts.collect(),
            wholes: vec![Whole::new(budget, DRIFT_PPM.unsigned_abs()); owners.count()],
            owners,
            now: 0,
            under_way: BinaryHeap::new(),
            sent: Vec::new(),
            taken: 0,
            renewed: 0,
            demands_change: false,
            is_greedy: false,
            rng,
        }
    }

    pub(crate) const fn loans_taken(&self) -> u64 {
        self.taken
    }

    pub(crate) const fn renewals(&self) -> u64 {
        self.renewed
    }

    pub(crate) fn forgotten(&self) -> u64 {
        self.hosts.iter().map(|host| host.forgotten).sum()
    }

    pub(crate) fn messages(&self) -> usize {
        self.sent.len()
    }

    /// Sets a node's demand of the first owner, in tokens a second.
    pub(crate) fn demand(&mut self, node: usize, tokens: u64) {
        self.hosts[node].parts[0].demand = tokens;
    }

    pub(crate) fn cut_all(&mut self, ms: u64) {
        let until = self.now + ms * MS;
        for host in &mut self.hosts {
            host.cut_until = until;
        }
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
            if self.demands_change {
                self.check_shares();
            }
        }
    }

    /// Checks that the programs' shares add up to at most the whole: an excess shows sooner here than in
    /// admitted packets.
    fn check_shares(&mut self) {
        for owner in 0..self.owners.count() {
            let hosts = self.hosts.iter_mut();
            let shares = hosts.map(|host| {
                let local = host.local(self.now);
                let share = host.parts[owner].bucket.share(local);
                share.in_billionths()
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
        while let Some(Reverse((at, number))) = self.under_way.peek().copied() {
            if at > self.now {
                break;
            }
            self.under_way.pop();
            let (header, content) = self.sent[usize::try_from(number).expect("few")];
            let [from, to_index] = [header.from, header.to].map(|node| node.0 as usize);
            if self.hosts[from].cut_until > self.now || self.hosts[to_index].cut_until > self.now {
                continue;
            }
            let host = &mut self.hosts[to_index];
            if host.down_until.is_some() {
                continue;
            }
            if host.stalled_until > self.now {
                self.under_way.push(Reverse((host.stalled_until, number)));
                continue;
            }
            let local = host.local(self.now);
            match (host.memory.receive(local, &header), content) {
                (Relevance::None, _) | (_, Content::Nothing) => {}
                (Relevance::OtherStart, _) => {
                    let reply = host.memory.header(header.from);
                    self.send((reply, Content::Nothing));
                }
                (Relevance::Entries, content) => {
                    let outcome = host.receive(local, &header, &content, &self.owners);
                    self.taken += u64::from(outcome.has_grown);
                    self.renewed += u64::from(outcome.is_renewed);
                    for (to, content) in outcome.outgoing {
                        let header = self.hosts[to_index].memory.header(to);
                        self.send((header, content));
                    }
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
            // In order, as an attacker replays recorded messages.
            let old = self.rng.u64(0..=number);
            for (later, number) in (old..=number).take(4).enumerate() {
                let at = self.now + (1 + later as u64) * MS;
                self.under_way.push(Reverse((at, number)));
            }
        }
    }

    /// Sends the packets of one step to a node.
    fn packets(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        // Most nodes of a large fleet are idle at all times.
        if host.parts.iter().all(|part| part.demand == 0) {
            return;
        }
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
        self.fail(number);
        let now = self.now;
        let host = &mut self.hosts[number];
        let local = host.local(now);
        if let Some(until) = host.down_until {
            if until > now {
                return;
            }
            host.start(Boot(host.boot + 1), local);
        }
        if host.stalled_until > now {
            return;
        }
        let may_forget = self.faults.forgotten > self.rng.u64(0..100);
        for (to, content) in host.tick(local, &self.owners, may_forget) {
            let header = self.hosts[number].memory.header(to);
            self.send((header, content));
        }
    }

    /// Makes random faults happen to a node.
    fn fail(&mut self, number: usize) {
        let (now, faults) = (self.now, self.faults);
        let mut happens = |permille: u64| self.rng.u64(0..1_000) < permille;
        let [crashes, stalls, is_cut, miscounts] = [
            faults.crashed,
            faults.stalled,
            faults.cut_off,
            faults.miscounted,
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
        if miscounts {
            let owner = self.rng.usize(0..self.owners.count());
            host.lose_count(host.local(now), owner);
        }
        if changes {
            let whole = self.owners.budget.rate / 1_000 + 1;
            let part = self.rng.usize(0..self.owners.count());
            host.parts[part].demand = match self.rng.u8(0..10) {
                1.. if self.is_greedy => 3 * whole,
                0..5 => 0,
                5..8 => self.rng.u64(0..3 * whole),
                8.. => 3 * whole,
            };
        }
    }
}

/// Returns the share that would admit all packets: a quarter above the demand, to absorb uneven arrival.
pub(crate) fn wanted(demand: u64, budget: Budget) -> Share {
    let wanted = demand * 1_000 * 5 / 4;
    let share = u128::from(wanted) * 1_000_000_000 / u128::from(budget.rate);
    Share::billionths(u64::try_from(share).unwrap_or(u64::MAX))
}

fn members(count: usize) -> Members {
    Members::new((0..count).map(|number| format!("node-{number}"))).expect("names")
}
