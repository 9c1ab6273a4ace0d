//! A large fleet with many owners: how many messages it sends, and that shares add up to at most the whole.
//! It has no packets and no faults.
//!
//! ```text
//! cargo test --release -p limiter-fleet --test simulation -- --ignored --nocapture large_fleets
//! ```

use std::collections::{HashMap, HashSet};

use limiter_fleet::{
    Boot, Bucket, Members, Memory, Node, NodeId, Payload, Relevance, Renewal, Share, Stakes,
};

use super::world::MS;

/// How long a message takes, and how often a node polls.
const STEP_NS: u64 = 50 * MS;
const STEPS_OF_POLL: u64 = 4;
const SECOND_STEPS: u64 = 20;

/// A bucket without tokens: only shares matter here.
struct Empty;

impl Bucket for Empty {
    fn change(&mut self, _now_ns: u64, _to: Share, _gained_millitokens: u64) -> u64 {
        0
    }
}

struct Place {
    memory: Memory,
    /// By owner.
    nodes: HashMap<u32, Node>,
}

#[derive(Default)]
struct Counts {
    entries: u64,
    renewals: u64,
    messages: u64,
}

enum Content {
    Entry(u32, Payload),
    Renewal(Renewal),
}

struct Fleet {
    places: Vec<Place>,
    stakes: Vec<Stakes>,
    /// The node that receives each owner's packets.
    busy: Vec<usize>,
    under_way: Vec<(NodeId, NodeId, Content)>,
    step: u64,
    counts: Counts,
    pairs: HashSet<(NodeId, NodeId)>,
}

impl Fleet {
    fn new(count: usize, owners_each: usize) -> Self {
        let members =
            Members::new((0..count).map(|number| format!("node-{number}"))).expect("names");
        let place = |number: u32| Place {
            memory: Memory::new(0, NodeId(number), Boot(1), members.terms(), members.count()),
            nodes: HashMap::new(),
        };
        let owners = 0..count * owners_each;
        Self {
            places: (0..members.count()).map(place).collect(),
            stakes: (owners.clone())
                .map(|owner| members.stakes(&owner.to_be_bytes()))
                .collect(),
            busy: owners.map(|owner| owner % count).collect(),
            under_way: Vec::new(),
            // All nodes have finished their silent start.
            step: members.terms().silent_ns() / STEP_NS + 1,
            counts: Counts::default(),
            pairs: HashSet::new(),
        }
    }

    fn demand(&self, owner: u32, place: usize) -> Share {
        if self.busy[owner as usize] == place {
            Share::WHOLE
        } else {
            Share::NONE
        }
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * SECOND_STEPS {
            self.step += 1;
            self.receive();
            for number in 0..self.places.len() {
                if (self.step + number as u64).is_multiple_of(STEPS_OF_POLL) {
                    self.poll(number);
                }
            }
            let pairs: HashSet<_> = (self.under_way.iter())
                .map(|(from, to, _)| (*from, *to))
                .collect();
            self.counts.messages += pairs.len() as u64;
            self.pairs.extend(pairs);
        }
    }

    fn receive(&mut self) {
        let now = self.step * STEP_NS;
        for (from, to, content) in std::mem::take(&mut self.under_way) {
            let header = self.places[from.0 as usize].memory.header(to);
            let number = to.0 as usize;
            let relevance = self.places[number].memory.receive(now, &header);
            if relevance != Relevance::Entries {
                // The sender learns the current start at once.
                let back = self.places[number].memory.header(from);
                self.places[from.0 as usize].memory.receive(now, &back);
            }
            match content {
                Content::Renewal(renewal) => {
                    self.counts.renewals += 1;
                    let memory = &mut self.places[number].memory;
                    let reply = memory.receive_renewal(now, &header, &renewal);
                    if !reply.is_none() {
                        self.under_way.push((to, from, Content::Renewal(reply)));
                    }
                }
                Content::Entry(owner, payload) => {
                    self.counts.entries += 1;
                    let demand = self.demand(owner, number);
                    let place = &mut self.places[number];
                    let stakes = &self.stakes[owner as usize];
                    let mut send = |other, payload| {
                        (self.under_way).push((to, other, Content::Entry(owner, payload)));
                    };
                    let node = (place.nodes.entry(owner)).or_insert_with(|| Node::new(stakes, to));
                    match payload {
                        Payload::Request(request) => {
                            node.receive_request(
                                now,
                                (&header, &request),
                                &place.memory,
                                &mut Empty,
                            );
                            node.reply(now, demand, &place.memory, &mut Empty, send);
                        }
                        Payload::Loan(loan) => {
                            let reply = (&header, &loan);
                            node.receive_loan(now, reply, &mut place.memory, &mut Empty);
                        }
                        Payload::Changed(share) => {
                            node.receive_changed(from, share);
                            for (bank, request) in
                                node.request(now, demand, &mut place.memory, &mut Empty)
                            {
                                send(bank, Payload::Request(request));
                            }
                        }
                    }
                }
            }
        }
    }

    fn poll(&mut self, number: usize) {
        let now = self.step * STEP_NS;
        let id = NodeId(u32::try_from(number).expect("few"));
        let is_to_tidy = (self.step / STEPS_OF_POLL).is_multiple_of(5);
        let Place { memory, nodes } = &mut self.places[number];
        for (owner, node) in nodes {
            let demand = if self.busy[*owner as usize] == number {
                Share::WHOLE
            } else {
                Share::NONE
            };
            let mut send = |to, payload| {
                self.under_way
                    .push((id, to, Content::Entry(*owner, payload)));
            };
            if is_to_tidy {
                node.record_use(now, memory);
                node.tidy(now, memory);
                node.hint(now, demand, memory, &mut send);
            }
            if node.would_act(now, demand, memory) {
                for (to, request) in node.request(now, demand, memory, &mut Empty) {
                    send(to, Payload::Request(request));
                }
                node.reply(now, demand, memory, &mut Empty, send);
            }
        }
        for (to, renewal) in memory.request_renewals(now) {
            self.under_way.push((id, to, Content::Renewal(renewal)));
        }
    }

    /// Moves an owner's packets to another node.
    fn moves(&mut self, owner: u32, to: usize) {
        self.busy[owner as usize] = to;
        let stakes = &self.stakes[owner as usize];
        let id = NodeId(u32::try_from(to).expect("few"));
        let nodes = &mut self.places[to].nodes;
        nodes.entry(owner).or_insert_with(|| Node::new(stakes, id));
    }

    /// Returns the busy nodes' share of the whole, in percent. Checks that no owner's shares exceed the
    /// whole.
    fn used(&self) -> u64 {
        let now = self.step * STEP_NS;
        let mut shares = vec![Share::NONE; self.stakes.len()];
        let mut of_busy = Share::NONE.in_billionths();
        for (number, place) in self.places.iter().enumerate() {
            for (owner, node) in &place.nodes {
                let share = node.in_force(now, &place.memory).share;
                shares[*owner as usize] += share;
                if self.busy[*owner as usize] == number {
                    of_busy += share.in_billionths();
                }
            }
        }
        assert!(shares.iter().all(|share| *share <= Share::WHOLE));
        of_busy * 100 / (self.stakes.len() as u64 * Share::WHOLE.in_billionths())
    }

    fn print(&mut self, what: &str, seconds: u64) {
        let nodes = self.places.len() as u64;
        let Counts {
            entries,
            renewals,
            messages,
        } = std::mem::take(&mut self.counts);
        // Each message has two ends.
        let each = |count: u64| 2 * count / seconds / nodes;
        println!(
            "{nodes} nodes, {} owners, {what}: {} % used; a second and node, both ways: {} entries, {} \
             renewals, {} messages; {} messages a second in all; {} pairs",
            self.stakes.len(),
            self.used(),
            each(entries),
            each(renewals),
            each(messages),
            messages / seconds,
            self.pairs.len() / 2,
        );
        self.pairs.clear();
    }
}

#[test]
#[ignore = "it takes minutes and gigabytes"]
fn large_fleets_speak_by_pairs() {
    for (nodes, owners_each) in [
        (5, 2_000),
        (100, 100),
        (1_000, 100),
        (10_000, 10),
        (10_000, 100),
    ] {
        let mut fleet = Fleet::new(nodes, owners_each);
        for owner in 0..nodes * owners_each {
            let owner = u32::try_from(owner).unwrap();
            fleet.moves(owner, fleet.busy[owner as usize]);
        }
        fleet.run(5);
        fleet.print("the first five seconds", 5);
        fleet.run(10);
        fleet.print("steady", 10);
        assert!(fleet.used() >= 94);
        // A tenth of the owners moves each second.
        for second in 0..5 {
            for owner in (second..nodes * owners_each).step_by(10) {
                let to = (fleet.busy[owner] + 1) % nodes;
                fleet.moves(u32::try_from(owner).unwrap(), to);
            }
            fleet.run(1);
        }
        fleet.print("moving", 5);
    }
}
