//! Nodes of a fleet whose letters are lost, late and repeated, and whose daemons crash: all that they admit would
//! have passed one bucket with the whole budget.

use std::{cmp::Reverse, collections::BinaryHeap};

use fastrand::Rng;
use limiter_common::{
    limit::{BUILT_IN, Cost, IdFormat, LimitId},
    strategy::gcra::Gcra,
};
use limiter_fleet::{Members, Note, Terms};
use limiter_policy::policy::{Limit, Rate};

use super::{
    keeper::{Addressed, Keeper},
    me::Me,
    model::Model,
};

const MS: u64 = 1_000_000;
const STEP_MS: u64 = 1;
const TICK_MS: u64 = 200;

struct World {
    rng: Rng,
    limit: Limit,
    members: Members,
    hosts: Vec<(Model, Option<Keeper>)>,
    /// When each node's daemon starts again.
    down_until: Vec<u64>,
    /// Packets a second that come to each.
    demand: Vec<u64>,
    rest: Vec<u64>,
    admitted: Vec<u64>,
    starts: u64,
    now_ms: u64,
    under_way: BinaryHeap<Reverse<(u64, usize)>>,
    sent: Vec<(usize, Note)>,
    /// How many of a hundred letters are lost, and how many are late or come twice.
    faults: u64,
    /// The TAT of one bucket for all, in ticks.
    whole_tat: u64,
    whole: Gcra,
}

impl World {
    fn new(seed: u64, nodes: usize, rate: Rate, faults: u64) -> Self {
        let members = Members::new((0..nodes).map(|number| format!("node-{number}"))).unwrap();
        let limit = Limit {
            name: "All".to_owned(),
            id: LimitId(32),
            id_format: IdFormat::Total,
            cost: Cost::Packets,
            fleet_nodes: Some(members.count()),
            ..Limit::of_built_in(&BUILT_IN[0], Some(rate))
        };
        let whole = Gcra::new(rate.burst, rate.count, rate.period_ns).unwrap();
        let floor = limit.floor().unwrap();
        let hosts = (0..nodes).map(|_| (Model::new(whole, floor), None));
        Self {
            rng: Rng::with_seed(seed),
            hosts: hosts.collect(),
            down_until: vec![0; nodes],
            demand: vec![0; nodes],
            rest: vec![0; nodes],
            admitted: vec![0; nodes],
            starts: 0,
            now_ms: 1_000,
            under_way: BinaryHeap::new(),
            sent: Vec::new(),
            faults,
            whole_tat: 0,
            whole,
            limit,
            members,
        }
    }

    fn keeper(&mut self, number: usize) -> Keeper {
        self.starts += 1_000;
        let id = self.members.node(&format!("node-{number}")).unwrap();
        let me = Me::new(self.members.clone(), id, Terms::DEFAULT, self.starts);
        Keeper::new(me)
    }

    fn run_for(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while self.now_ms < end {
            self.now_ms += STEP_MS;
            for (model, _) in &self.hosts {
                model.now_ns.set(self.now_ms * MS);
            }
            self.deliver();
            for number in 0..self.hosts.len() {
                self.packets(number);
                if (self.now_ms + number as u64 * 37).is_multiple_of(TICK_MS) {
                    self.tick(number);
                }
            }
        }
    }

    fn packets(&mut self, number: usize) {
        self.rest[number] += self.demand[number] * STEP_MS;
        while self.rest[number] >= 1_000 {
            self.rest[number] -= 1_000;
            if self.hosts[number].0.admit() {
                self.admitted[number] += 1;
                let now = self.whole.ticks(self.now_ms * MS);
                let is_within = self.whole.take(now, &mut self.whole_tat);
                assert!(is_within, "above the budget");
            }
        }
    }

    fn tick(&mut self, number: usize) {
        if self.faults > 0 && self.rng.u64(0..100) == 0 {
            self.hosts[number].1 = None;
            self.down_until[number] = self.now_ms + self.rng.u64(1..5_000);
        }
        if self.faults > 0 && self.rng.u64(0..20) == 0 {
            let most = 2 * self.limit.default.unwrap().count;
            self.demand[number] = self.rng.u64(0..most);
        }
        if self.down_until[number] > self.now_ms {
            return;
        }
        if self.hosts[number].1.is_none() {
            self.hosts[number].1 = Some(self.keeper(number));
        }
        let (model, keeper) = &mut self.hosts[number];
        let keeper = keeper.as_mut().unwrap();
        keeper.follow(model, std::slice::from_ref(&self.limit));
        let said = keeper.ask(model);
        self.send(said);
    }

    fn send(&mut self, said: Vec<Addressed>) {
        for (to, note) in said {
            self.sent.push((to.0 as usize, note));
            let number = self.sent.len() - 1;
            let mut happens = |percent| self.rng.u64(0..100) < percent;
            let (is_lost, is_late, comes_twice) = (
                happens(self.faults),
                happens(self.faults),
                happens(self.faults),
            );
            let most = if is_late { 4_000 } else { 10 };
            if !is_lost {
                let at = self.now_ms + self.rng.u64(1..most);
                self.under_way.push(Reverse((at, number)));
            }
            if comes_twice {
                let old = self.rng.usize(0..=number);
                self.under_way.push(Reverse((self.now_ms + 5, old)));
            }
        }
    }

    fn deliver(&mut self) {
        while let Some(Reverse((at, number))) = self.under_way.peek().copied() {
            if at > self.now_ms {
                return;
            }
            self.under_way.pop();
            let (to, note) = self.sent[number];
            let (model, keeper) = &mut self.hosts[to];
            if let Some(keeper) = keeper {
                let said = keeper.hear(model, &[note]);
                self.send(said);
            }
        }
    }

    /// Returns what part of the budget was admitted since the last time, by the rate, in thousandths.
    fn used(&mut self, ms: u64) -> u64 {
        let rate = self.limit.default.unwrap().count;
        let admitted: u64 = self.admitted.iter_mut().map(std::mem::take).sum();
        admitted * 1_000 * 1_000 / (rate * ms)
    }
}

const fn rate(burst: u64, count: u64) -> Rate {
    Rate {
        burst,
        count,
        period_ns: 1_000_000_000,
    }
}

#[test]
fn no_fault_lets_more_pass_than_the_budget() {
    for seed in 1..40 {
        let mut rng = Rng::with_seed(seed);
        let nodes = rng.usize(1..5);
        let count = rng.u64(5_000..60_000);
        // As much as comes back in up to two seconds: a bucket that fills at once hides what comes from nowhere.
        let burst = (count * rng.u64(10..2_000) / 1_000).max(100);
        let mut world = World::new(seed, nodes, rate(burst, count), 15);
        world.run_for(20_000);
        assert!(world.admitted.iter().sum::<u64>() > 0);
    }
}

/// A node that begins to need more while another has used up all gets a larger bucket, and no more tokens.
#[test]
fn a_share_that_moves_brings_no_tokens() {
    let mut world = World::new(1, 2, rate(20_000, 10_000), 0);
    world.run_for(3_000);
    for demand in [[40_000, 0], [40_000, 40_000], [0, 40_000], [40_000, 5_000]] {
        world.demand = demand.to_vec();
        world.run_for(4_000);
    }
}

#[test]
fn one_node_with_all_the_demand_has_nearly_all() {
    let mut world = World::new(1, 3, rate(6_000, 60_000), 0);
    world.run_for(3_000);
    world.demand[1] = 200_000;
    world.run_for(1_000);
    world.used(1_000);
    world.run_for(5_000);
    let used = world.used(5_000);
    assert!((950..=1_000).contains(&used), "{used}");
    // Demand that moves every ten seconds.
    for node in [0, 2, 1, 0] {
        world.demand = vec![0; 3];
        world.demand[node] = 200_000;
        world.run_for(10_000);
        let used = world.used(10_000);
        println!("used after a move: {used} of 1000");
        assert!((900..=1_000).contains(&used), "{used}");
    }
}

#[test]
fn cut_off_each_has_its_own_and_later_shares_again() {
    let mut world = World::new(1, 2, rate(6_000, 60_000), 0);
    world.run_for(3_000);
    world.demand = vec![200_000, 0];
    world.run_for(2_000);
    // Nothing arrives.
    let silent = |world: &mut World, ms: u64| {
        for _ in 0..ms {
            world.under_way.clear();
            world.run_for(1);
        }
    };
    silent(&mut world, 3_000);
    world.used(1);
    silent(&mut world, 2_000);
    let used = world.used(2_000);
    assert!((480..=500).contains(&used), "half: {used}");
    world.run_for(1_000);
    world.used(1);
    world.run_for(2_000);
    let used = world.used(2_000);
    assert!(used > 950, "{used}");
}
