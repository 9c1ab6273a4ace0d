//! A node's costs for many hot owners: messages and CPU time, with real messages and MACs but without a
//! kernel.
//!
//! ```text
//! cargo test --release -p limiter-userspace --lib -- --ignored --nocapture what_many_hot_owners_cost
//! ```

use std::time::Duration;

use limiter_fleet::{Authenticator, Key, Keys};
use rustix::time::{ClockId, clock_gettime};

use super::*;

const NODES: usize = 5;
const OWNERS: u32 = 10_000;

/// How the demand of owners moves.
#[derive(Clone, Copy, Debug)]
enum Motion {
    /// Each owner's packets come to one node, which needs the other nodes' shares too.
    OneNode,
    /// To two nodes, with more demand than the budget.
    TwoNodes,
    /// To one node, another one every ten seconds, at a different moment for each owner.
    Moving,
}

/// The demand of each owner's packets.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// 100 000 tokens a second, the whole rate.
    Busy,
    /// Six of ten tokens a second.
    Slow,
}

impl Pace {
    fn rate(self) -> Rate {
        match self {
            Self::Busy => rate(20_000, 100_000),
            Self::Slow => rate(200, 10),
        }
    }

    /// Returns the tokens demanded until a poll.
    fn tokens(self, owner: u64, poll: u64) -> u64 {
        match self {
            Self::Busy => 20_000,
            Self::Slow => 1 + u64::from((owner + poll).is_multiple_of(5)),
        }
    }
}

/// The CPU time of this thread: other load does not count.
#[derive(Clone, Copy)]
struct Cpu(Duration);

impl Cpu {
    fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Self(Duration::try_from(time).unwrap())
    }

    fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

struct Costs {
    pace: Pace,
    hosts: Vec<(Model, Keeper)>,
    owners: Vec<BucketKey>,
    authenticator: Authenticator,
    under_way: Vec<(usize, Vec<u8>)>,
    now_ns: u64,
    /// The first node's time.
    time: Duration,
    authenticating: Duration,
    polling: Duration,
    sent: u64,
    received: u64,
    bytes: u64,
    entries: u64,
}

impl Costs {
    fn new(pace: Pace) -> Self {
        let rate = pace.rate();
        let members = Members::new((0..NODES).map(|number| format!("node-{number}"))).unwrap();
        let id = LimitId(32);
        let limit = limit(id, IdFormat::IpAddress, rate, &members);
        let address = |number: u32| Address::v4((0x0a00_0000 + number).to_be_bytes());
        let owners = (0..OWNERS).map(|number| BucketKey::of_source(id, address(number), 32));
        let keys = Keys {
            current: Key::new(&[7; 32]).unwrap(),
            other: None,
        };
        let hosts = members.names().map(|name| {
            let node = members.node(name).unwrap();
            let mut keeper = Keeper::new(0, members.clone(), node, Terms::DEFAULT, 1);
            keeper.follow(std::slice::from_ref(&limit), 0, 0);
            (
                Model::new(whole(rate), minimum_share_of(members.count())),
                keeper,
            )
        });
        Self {
            pace,
            hosts: hosts.collect(),
            owners: owners.collect(),
            authenticator: Authenticator::new("edge", &members, &Terms::DEFAULT, keys),
            under_way: Vec::new(),
            now_ns: 3_000 * MS,
            time: Duration::ZERO,
            authenticating: Duration::ZERO,
            polling: Duration::ZERO,
            sent: 0,
            received: 0,
            bytes: 0,
            entries: 0,
        }
    }

    /// Runs all nodes for so many polls.
    fn run(&mut self, polls: u64, motion: Motion) {
        for _ in 0..polls {
            self.now_ns += TICK_MS * MS;
            let each = u64::from(OWNERS);
            for (number, owner) in (0..each).zip(&self.owners) {
                let poll = self.now_ns / (TICK_MS * MS);
                let tokens = self.pace.tokens(number, poll);
                let turn = match motion {
                    Motion::Moving => (poll + number) / 50,
                    Motion::OneNode | Motion::TwoNodes => 0,
                };
                let busy = usize::try_from((number + turn) % NODES as u64).unwrap();
                self.hosts[busy].0.wants(owner, tokens);
                if matches!(motion, Motion::TwoNodes) {
                    self.hosts[(busy + 1) % NODES].0.wants(owner, tokens);
                }
            }
            for number in 0..NODES {
                self.hosts[number].0.now_ns.set(self.now_ns);
                let begun = Cpu::now();
                let (model, keeper) = &mut self.hosts[number];
                let outgoing = keeper.poll(&*model);
                if number == 0 {
                    self.polling += begun.elapsed();
                }
                self.spend(number, begun);
                self.send(number, outgoing);
            }
            // All messages arrive before the next poll: requests, then replies.
            for _ in 0..2 {
                let under_way = std::mem::take(&mut self.under_way);
                for to in 0..NODES {
                    let begun = Cpu::now();
                    let messages = under_way.iter().filter(|(node, _)| *node == to);
                    let messages: Vec<_> = messages
                        .map(|(_, message)| self.authenticator.open(message).unwrap())
                        .collect();
                    if to == 0 {
                        let entries = messages.iter().map(|message| {
                            message.entries.len() + usize::from(!message.renewal.is_none())
                        });
                        self.entries += entries.sum::<usize>() as u64;
                        self.received += messages.len() as u64;
                        self.authenticating += begun.elapsed();
                    }
                    let (model, keeper) = &mut self.hosts[to];
                    let outgoing = keeper.receive(&*model, &messages);
                    self.spend(to, begun);
                    self.send(to, outgoing);
                }
            }
        }
    }

    fn spend(&mut self, node: usize, begun: Cpu) {
        if node == 0 {
            self.time += begun.elapsed();
        }
    }

    fn send(&mut self, from: usize, outgoing: Outgoing) {
        let begun = Cpu::now();
        let keeper = &self.hosts[from].1;
        let mut by_node = vec![(Renewal::default(), Vec::new()); NODES];
        let count = outgoing.entries.len() + outgoing.renewals.len();
        for (to, entry) in outgoing.entries {
            by_node[to.0 as usize].1.push(entry);
        }
        for (to, renewal) in outgoing.renewals {
            by_node[to.0 as usize].0 = renewal;
        }
        let mut messages = Vec::new();
        for (to, (renewal, entries)) in (0..).zip(by_node) {
            let header = keeper.header(limiter_fleet::NodeId(to));
            let to = to as usize;
            messages.extend(
                self.authenticator
                    .messages(&header, renewal, &entries)
                    .map(|message| (to, message)),
            );
        }
        for to in outgoing.strangers {
            messages.push((to.0 as usize, self.authenticator.empty(&keeper.header(to))));
        }
        if from == 0 {
            self.authenticating += begun.elapsed();
            let bytes = messages.iter().map(|(_, message)| message.len());
            self.bytes += bytes.sum::<usize>() as u64;
            self.sent += messages.len() as u64;
            self.entries += count as u64;
        }
        self.under_way.extend(messages);
        self.spend(from, begun);
    }

    fn print(&mut self, what: &str, polls: u64) {
        let seconds = polls * TICK_MS / 1_000;
        let per_second = |count: u64| count / seconds;
        // In hundredths of a percent of a CPU.
        let part = |time: Duration| u64::try_from(time.as_micros()).unwrap() / (100 * seconds);
        let percent = |time: Duration| format!("{}.{:02} %", part(time) / 100, part(time) % 100);
        let (model, _) = &self.hosts[0];
        println!(
            "{what}: {} of a CPU, of which {} to poll and {} for codec and MACs; a second: {} entries, {} messages out \
             ({} bytes), {} in; {} words, of which set {} a second, and {} waits",
            percent(self.time),
            percent(self.polling),
            percent(self.authenticating),
            per_second(self.entries),
            per_second(self.sent),
            per_second(self.bytes),
            per_second(self.received),
            model.words(),
            per_second(model.sets()),
            model.waits(),
        );
        (self.time, self.authenticating, self.polling) = Default::default();
        (self.sent, self.received, self.bytes, self.entries) = (0, 0, 0, 0);
        model.forget_counts();
    }
}

#[test]
#[ignore = "it measures"]
fn what_many_hot_owners_cost() {
    for (pace, motion) in [
        (Pace::Busy, Motion::OneNode),
        (Pace::Busy, Motion::TwoNodes),
        (Pace::Busy, Motion::Moving),
        (Pace::Slow, Motion::OneNode),
        (Pace::Slow, Motion::Moving),
    ] {
        let mut costs = Costs::new(pace);
        costs.run(25, motion);
        costs.print(&format!("{pace:?}, {motion:?}, the first five seconds"), 25);
        costs.run(50, motion);
        costs.print(&format!("{pace:?}, {motion:?}"), 50);
    }
}
