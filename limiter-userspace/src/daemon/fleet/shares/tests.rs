//! Nodes of a fleet with lost, late and repeated messages and crashing daemons. The invariant: one bucket
//! with the whole budget would have admitted every packet that they admit.

use std::{cmp::Reverse, collections::BinaryHeap};

use fastrand::Rng;
use limiter_common::{
    address::Address,
    key::BucketKey,
    limit::{BUILT_IN, Cost, IdFormat, LimitId},
    strategy::gcra::{Gcra, Parts},
};
use limiter_fleet::{Members, Message, Renewal, Terms};
use limiter_policy::policy::{Limit, Rate, shared_limits::minimum_share_of};

mod cost;
mod room;

use super::{
    keeper::{Keeper, Outgoing},
    model::Model,
};

const MS: u64 = 1_000_000;
const STEP_MS: u64 = 1;
const TICK_MS: u64 = 200;

struct World {
    rng: Rng,
    limit: Limit,
    members: Members,
    hosts: Vec<Host>,
    owners: Vec<BucketKey>,
    starts: u64,
    now_ms: u64,
    under_way: BinaryHeap<Reverse<(u64, usize)>>,
    sent: Vec<Message>,
    /// How many of a hundred messages are lost, and how many are late or repeated.
    faults: u64,
    /// Whether daemons start without waiting, which is wrong.
    is_hasty: bool,
    /// The level of each owner's single bucket, in ticks.
    whole_levels: Vec<u64>,
}

struct Host {
    model: Model,
    keeper: Option<Keeper>,
    /// When its daemon starts again.
    down_until: u64,
    /// The rate of packets of each owner, per second.
    demand: Vec<u64>,
    rest: Vec<u64>,
    admitted: u64,
}

impl World {
    /// A world with one owner: all sources together.
    fn new(seed: u64, nodes: usize, rate: Rate, faults: u64) -> Self {
        Self::of(seed, nodes, IdFormat::Total, 1, rate, faults)
    }

    /// A world with so many owners.
    fn of(
        seed: u64,
        nodes: usize,
        id_format: IdFormat,
        owners: u8,
        rate: Rate,
        faults: u64,
    ) -> Self {
        let members = Members::new((0..nodes).map(|number| format!("node-{number}"))).unwrap();
        let id = LimitId(32);
        let limit = limit(id, id_format, rate, &members);
        let whole = whole(rate);
        let address = |number| Address::v4([192, 0, 2, number]);
        let owners: Vec<_> = match id_format {
            IdFormat::Total => vec![BucketKey::of_host(id)],
            _ => (0..owners)
                .map(|number| BucketKey::of_source(id, address(number), 32))
                .collect(),
        };
        let hosts = (0..nodes).map(|_| Host {
            model: Model::new(whole, minimum_share_of(members.floors())),
            keeper: None,
            down_until: 0,
            demand: vec![0; owners.len()],
            rest: vec![0; owners.len()],
            admitted: 0,
        });
        Self {
            rng: Rng::with_seed(seed),
            hosts: hosts.collect(),
            starts: 0,
            now_ms: 1_000,
            under_way: BinaryHeap::new(),
            sent: Vec::new(),
            faults,
            is_hasty: false,
            whole_levels: vec![whole.burst_offset; owners.len()],
            owners,
            limit,
            members,
        }
    }

    fn keeper(&mut self, number: usize) -> Keeper {
        self.starts += 1_000;
        let id = self.members.node(&format!("node-{number}")).unwrap();
        let mut keeper = Keeper::new(
            self.now_ms * MS,
            self.members.clone(),
            id,
            Terms::DEFAULT,
            self.starts,
        );
        let hasty_ns = if self.is_hasty { 2_100 * MS } else { 0 };
        let now_ns = (self.now_ms * MS).saturating_sub(hasty_ns);
        keeper.follow(std::slice::from_ref(&self.limit), 0, now_ns);
        keeper
    }

    fn run_for(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        let whole = whole(self.limit.default.unwrap());
        while self.now_ms < end {
            self.now_ms += STEP_MS;
            for level in &mut self.whole_levels {
                *level = (*level + whole.ticks(STEP_MS * MS) + 1).min(whole.burst_offset);
            }
            for host in &self.hosts {
                host.model.now_ns.set(self.now_ms * MS);
            }
            self.deliver();
            for number in 0..self.hosts.len() {
                self.packets(number, whole.emission_interval);
                if (self.now_ms + number as u64 * 37).is_multiple_of(TICK_MS) {
                    self.tick(number);
                }
            }
        }
    }

    fn packets(&mut self, number: usize, whole: u64) {
        let host = &mut self.hosts[number];
        for (owner, level) in self.whole_levels.iter_mut().enumerate() {
            host.rest[owner] += host.demand[owner] * STEP_MS;
            while host.rest[owner] >= 1_000 {
                host.rest[owner] -= 1_000;
                if host.model.admit(&self.owners[owner]) {
                    host.admitted += 1;
                    *level = level.checked_sub(whole).expect("above the budget");
                }
            }
        }
    }

    fn tick(&mut self, number: usize) {
        if self.faults > 0 && self.rng.u64(0..100) == 0 {
            self.hosts[number].keeper = None;
            self.hosts[number].down_until = self.now_ms + self.rng.u64(1..5_000);
        }
        if self.faults > 0 && self.rng.u64(0..20) == 0 {
            let most = 2 * self.limit.default.unwrap().count;
            let owner = self.rng.usize(0..self.owners.len());
            self.hosts[number].demand[owner] = self.rng.u64(0..most);
        }
        if self.hosts[number].down_until > self.now_ms {
            return;
        }
        if self.hosts[number].keeper.is_none() {
            self.hosts[number].keeper = Some(self.keeper(number));
        }
        let host = &mut self.hosts[number];
        let keeper = host.keeper.as_mut().unwrap();
        keeper.follow(std::slice::from_ref(&self.limit), 0, self.now_ms * MS);
        let outgoing = keeper.poll(&host.model);
        self.send(number, outgoing);
    }

    fn send(&mut self, from: usize, outgoing: Outgoing) {
        let keeper = self.hosts[from].keeper.as_ref().unwrap();
        let nothing = Renewal::default();
        let entries = outgoing.entries.into_iter();
        let entries = entries.map(|(to, entry)| (to, nothing, vec![entry]));
        let renewals = outgoing.renewals.into_iter();
        let renewals = renewals.map(|(to, renewal)| (to, renewal, Vec::new()));
        let empty = outgoing.strangers.into_iter();
        let empty = empty.map(|to| (to, nothing, Vec::new()));
        let messages: Vec<_> = entries
            .chain(renewals)
            .chain(empty)
            .map(|(to, renewal, entries)| Message {
                header: keeper.header(to),
                renewal,
                entries,
            })
            .collect();
        for message in messages {
            self.sent.push(message);
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
                for number in (old..=number).take(3) {
                    self.under_way.push(Reverse((self.now_ms + 5, number)));
                }
            }
        }
    }

    fn deliver(&mut self) {
        while let Some(Reverse((at, _))) = self.under_way.peek().copied() {
            if at > self.now_ms {
                return;
            }
            // A node handles all messages that have arrived together.
            let mut messages = vec![Vec::new(); self.hosts.len()];
            while let Some(Reverse((at, number))) = self.under_way.peek().copied()
                && at <= self.now_ms
            {
                self.under_way.pop();
                let message = &self.sent[number];
                messages[message.header.to.0 as usize].push(message.clone());
            }
            for (to, messages) in messages.into_iter().enumerate() {
                let host = &mut self.hosts[to];
                if let Some(keeper) = host.keeper.as_mut().filter(|_| !messages.is_empty()) {
                    let outgoing = keeper.receive(&host.model, &messages);
                    self.send(to, outgoing);
                }
            }
        }
    }

    /// Returns the fraction of the rate that was admitted since the last call, in thousandths.
    fn used(&mut self, ms: u64) -> u64 {
        let rate = self.limit.default.unwrap().count;
        let hosts = self.hosts.iter_mut();
        let admitted: u64 = hosts.map(|host| std::mem::take(&mut host.admitted)).sum();
        admitted * 1_000 * 1_000 / (rate * ms)
    }

    /// Sets each node's demand of the first owner, in packets a second.
    fn demand(&mut self, demand: &[u64]) {
        for (host, demand) in self.hosts.iter_mut().zip(demand) {
            host.demand[0] = *demand;
        }
    }
}

/// Returns a limit shared by these nodes.
fn limit(id: LimitId, id_format: IdFormat, rate: Rate, members: &Members) -> Limit {
    Limit {
        name: format!("{id:?}"),
        id,
        id_format,
        cost: Cost::Packets,
        fleet_nodes: Some(members.floors()),
        ..Limit::of_built_in(&BUILT_IN[0], Some(rate))
    }
}

fn whole(rate: Rate) -> Gcra {
    Gcra::new(rate.burst, rate.count, rate.period_ns).unwrap()
}

const fn rate(burst: u64, count: u64) -> Rate {
    Rate {
        burst,
        count,
        period_ns: 1_000_000_000,
    }
}

/// A world with many faults, and one owner that is always hot or several that become hot.
fn faulty(seed: u64) -> World {
    let mut rng = Rng::with_seed(seed);
    let nodes = rng.usize(1..5);
    let count = rng.u64(500..2_000);
    // A burst of two seconds at most: a larger one would hide surplus tokens.
    let burst = (count * rng.u64(10..2_000) / 1_000).max(160);
    let mut world = if seed.is_multiple_of(2) {
        World::new(seed, nodes, rate(burst, count), 15)
    } else {
        World::of(seed, nodes, IdFormat::IpAddress, 3, rate(burst, count), 15)
    };
    // Purely random demand might never reach a small fleet.
    world.hosts[rng.usize(0..nodes)].demand[0] = count;
    world
}

/// Returns the value of an environment variable.
fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn no_fault_lets_more_pass_than_the_budget() {
    let first = number("LIMITER_FLEET_SEED", 1);
    for seed in first..first + number("LIMITER_FLEET_SEEDS", 12) {
        let mut world = faulty(seed);
        world.run_for(20_000);
        assert!(world.hosts.iter().any(|host| host.admitted > 0), "{seed}");
    }
}

/// The check can fail: a daemon that starts without waiting has its home share, which it has lent before.
#[test]
#[should_panic(expected = "above the budget")]
fn a_daemon_that_begins_too_early_is_found_out() {
    start_while_lent(true);
}

#[test]
fn a_daemon_that_starts_lets_loans_end() {
    let mut world = start_while_lent(false);
    // Then each has its half again.
    world.run_for(2_000);
    world.used(1);
    world.run_for(2_000);
    assert!((950..=1_000).contains(&world.used(2_000)));
}

/// Restarts a daemon that has lent everything, while packets reach its host.
fn start_while_lent(is_hasty: bool) -> World {
    let mut world = World::new(1, 2, rate(600, 6_000), 0);
    world.run_for(3_000);
    world.demand(&[20_000, 0]);
    world.run_for(2_000);
    world.is_hasty = is_hasty;
    world.hosts[1].keeper = None;
    world.demand(&[20_000, 20_000]);
    world.run_for(2_000);
    world
}

/// Owners are hot while they need a share, on all nodes with a request.
#[test]
fn owners_are_hot_while_they_need_something() {
    let mut world = World::of(1, 3, IdFormat::IpAddress, 9, rate(600, 6_000), 0);
    world.run_for(3_000);
    // Less than the home share.
    for owner in 0..9 {
        world.hosts[0].demand[owner] = 100;
    }
    world.run_for(3_000);
    let words = |world: &World| [0, 1, 2].map(|host: usize| world.hosts[host].model.words());
    assert_eq!(words(&world), [0; 3]);
    for owner in 0..4 {
        world.hosts[0].demand[owner] = 10_000;
    }
    world.run_for(1_500);
    assert_eq!(words(&world), [4; 3]);
    world.used(1);
    world.run_for(4_000);
    // Four owners at the whole rate, and five at a sixtieth.
    let used = world.used(4_000);
    assert!((3_880..=4_084).contains(&used), "{used}");
    // Many words change with one wait.
    let waits = world.hosts[1].model.waits();
    assert!(waits < 10, "{waits}");
    for owner in 0..4 {
        world.hosts[0].demand[owner] = 0;
    }
    world.run_for(12_000);
    assert_eq!(words(&world), [0; 3]);
    for owner in &world.owners {
        let shares = [0, 1, 2].map(|host: usize| world.hosts[host].model.share(owner).number());
        assert_eq!(shares, [3_333_333; 3]);
    }
}

/// A bank without demand lends everything, even if it had nothing to request when its demand ended.
#[test]
fn what_a_bank_no_longer_needs_is_lent() {
    let mut world = World::new(1, 5, rate(20_000, 6_000), 0);
    world.run_for(3_000);
    // Without a store, each node has its home share.
    world.demand(&[5_000; 5]);
    for _ in 0..5_000 {
        world.run_for(1);
        world.under_way.clear();
    }
    world.demand(&[0, 0, 0, 5_000, 5_000]);
    world.run_for(4_000);
    world.used(1);
    world.run_for(2_000);
    assert!((940..=1_000).contains(&world.used(2_000)));
}

/// A node with rising demand, while another has spent the budget, gets a larger bucket without more tokens.
#[test]
fn a_share_that_moves_brings_no_tokens() {
    let mut world = World::new(1, 2, rate(2_000, 1_000), 0);
    world.run_for(3_000);
    for demand in [[4_000, 0], [4_000, 4_000], [0, 4_000], [4_000, 500]] {
        world.demand(&demand);
        world.run_for(4_000);
    }
}

/// A bank that waits for shares to return sends one hint, and the receiving node uses its last poll.
#[test]
fn a_budget_that_moves_takes_few_entries() {
    // A busy owner, and a slow owner.
    for (count, demand, ms) in [(2_000, 6_000, 5_000), (10, 6, 45_000)] {
        let mut world = World::of(1, 5, IdFormat::IpAddress, 1, rate(200.max(count), count), 0);
        world.run_for(3_000);
        world.demand(&[demand, 0, 0, 0, 0]);
        // Until part of its burst is spent, and shares have moved.
        world.run_for(ms);
        let entries = |world: &World| -> usize {
            let sent = world.sent.iter();
            sent.map(|message| message.entries.len()).sum()
        };
        let before = entries(&world);
        world.demand(&[0, demand, 0, 0, 0]);
        world.run_for(3_000);
        let sent = entries(&world) - before;
        println!("{demand} a second: {sent} entries");
        assert!((14..=30).contains(&sent), "{sent}");
        world.used(1);
        world.run_for(5_000);
        let used = world.used(5_000);
        let most = demand.min(count) * 1_000 / count;
        assert!(used * 100 >= most * 95, "{used} of {most}");
    }
}

#[test]
fn one_node_with_all_the_demand_has_nearly_all() {
    let mut world = World::new(1, 3, rate(600, 6_000), 0);
    world.run_for(3_000);
    world.demand(&[0, 20_000, 0]);
    world.run_for(1_000);
    world.used(1_000);
    world.run_for(5_000);
    let used = world.used(5_000);
    assert!((950..=1_000).contains(&used), "{used}");
    // Demand moves every ten seconds.
    for node in [0, 2, 1, 0] {
        let mut demand = [0; 3];
        demand[node] = 20_000;
        world.demand(&demand);
        world.run_for(10_000);
        let used = world.used(10_000);
        println!("used after a move: {used} of 1000");
        assert!((900..=1_000).contains(&used), "{used}");
    }
}

#[test]
fn cut_off_each_has_its_own_and_later_shares_again() {
    let mut world = World::new(1, 2, rate(600, 6_000), 0);
    world.run_for(3_000);
    world.demand(&[20_000, 0]);
    world.run_for(2_000);
    // No message arrives.
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
