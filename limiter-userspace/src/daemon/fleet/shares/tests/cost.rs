//! A node's costs for many hot owners: letters and CPU time, with real letters and seals but without a
//! kernel.
//!
//! ```text
//! cargo test --release -p limiter-userspace --lib -- --ignored --nocapture what_many_hot_owners_cost
//! ```

use std::time::Duration;

use limiter_fleet::{Key, Keys, Seal};
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
    fn tokens(self, owner: u64, look: u64) -> u64 {
        match self {
            Self::Busy => 20_000,
            Self::Slow => 1 + u64::from((owner + look).is_multiple_of(5)),
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
    seal: Seal,
    under_way: Vec<(usize, Vec<u8>)>,
    now_ns: u64,
    /// The first node's time.
    time: Duration,
    sealing: Duration,
    looking: Duration,
    sent: u64,
    heard: u64,
    bytes: u64,
    notes: u64,
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
            seal: Seal::new("edge", &members, &Terms::DEFAULT, keys),
            under_way: Vec::new(),
            now_ns: 3_000 * MS,
            time: Duration::ZERO,
            sealing: Duration::ZERO,
            looking: Duration::ZERO,
            sent: 0,
            heard: 0,
            bytes: 0,
            notes: 0,
        }
    }

    /// Runs all nodes for so many polls.
    fn run(&mut self, looks: u64, motion: Motion) {
        for _ in 0..looks {
            self.now_ns += TICK_MS * MS;
            let each = u64::from(OWNERS);
            for (number, owner) in (0..each).zip(&self.owners) {
                let look = self.now_ns / (TICK_MS * MS);
                let tokens = self.pace.tokens(number, look);
                let turn = match motion {
                    Motion::Moving => (look + number) / 50,
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
                let said = keeper.look(&*model);
                if number == 0 {
                    self.looking += begun.elapsed();
                }
                self.spend(number, begun);
                self.send(number, said);
            }
            // All letters arrive before the next poll: questions, then answers.
            for _ in 0..2 {
                let under_way = std::mem::take(&mut self.under_way);
                for to in 0..NODES {
                    let begun = Cpu::now();
                    let letters = under_way.iter().filter(|(node, _)| *node == to);
                    let letters: Vec<_> = letters
                        .map(|(_, letter)| self.seal.open(letter).unwrap())
                        .collect();
                    if to == 0 {
                        let notes = letters.iter().map(|letter| {
                            letter.notes.len() + usize::from(!letter.renewal.is_none())
                        });
                        self.notes += notes.sum::<usize>() as u64;
                        self.heard += letters.len() as u64;
                        self.sealing += begun.elapsed();
                    }
                    let (model, keeper) = &mut self.hosts[to];
                    let said = keeper.hear(&*model, &letters);
                    self.spend(to, begun);
                    self.send(to, said);
                }
            }
        }
    }

    fn spend(&mut self, node: usize, begun: Cpu) {
        if node == 0 {
            self.time += begun.elapsed();
        }
    }

    fn send(&mut self, from: usize, said: Said) {
        let begun = Cpu::now();
        let keeper = &self.hosts[from].1;
        let mut by_node = vec![(Renewal::default(), Vec::new()); NODES];
        let count = said.notes.len() + said.renewals.len();
        for (to, note) in said.notes {
            by_node[to.0 as usize].1.push(note);
        }
        for (to, renewal) in said.renewals {
            by_node[to.0 as usize].0 = renewal;
        }
        let mut letters = Vec::new();
        for (to, (renewal, notes)) in (0..).zip(by_node) {
            let header = keeper.header(limiter_fleet::NodeId(to));
            let to = to as usize;
            letters.extend(
                self.seal
                    .letters(&header, renewal, &notes)
                    .map(|letter| (to, letter)),
            );
        }
        for to in said.strangers {
            letters.push((to.0 as usize, self.seal.empty(&keeper.header(to))));
        }
        if from == 0 {
            self.sealing += begun.elapsed();
            let bytes = letters.iter().map(|(_, letter)| letter.len());
            self.bytes += bytes.sum::<usize>() as u64;
            self.sent += letters.len() as u64;
            self.notes += count as u64;
        }
        self.under_way.extend(letters);
        self.spend(from, begun);
    }

    fn tell(&mut self, what: &str, looks: u64) {
        let seconds = looks * TICK_MS / 1_000;
        let per_second = |count: u64| count / seconds;
        // In hundredths of a percent of a CPU.
        let part = |time: Duration| u64::try_from(time.as_micros()).unwrap() / (100 * seconds);
        let percent = |time: Duration| format!("{}.{:02} %", part(time) / 100, part(time) % 100);
        let (model, _) = &self.hosts[0];
        println!(
            "{what}: {} of a CPU, of which {} to look and {} for codec and seals; a second: {} notes, {} letters out \
             ({} bytes), {} in; {} words, of which set {} a second, and {} waits",
            percent(self.time),
            percent(self.looking),
            percent(self.sealing),
            per_second(self.notes),
            per_second(self.sent),
            per_second(self.bytes),
            per_second(self.heard),
            model.words(),
            per_second(model.sets()),
            model.waits(),
        );
        (self.time, self.sealing, self.looking) = Default::default();
        (self.sent, self.heard, self.bytes, self.notes) = (0, 0, 0, 0);
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
        costs.tell(&format!("{pace:?}, {motion:?}, the first five seconds"), 25);
        costs.run(50, motion);
        costs.tell(&format!("{pace:?}, {motion:?}"), 50);
    }
}
