//! A host: the daemon's work for each key, and the buckets that outlive a crash of the daemon.

use std::collections::HashMap;

use limiter_fleet::{
    Name, Share,
    lease::{
        ActiveKey, Call, CallId, Change, Effect, KeyName, LEASE_NS, Lease, Leases, Need, Reply,
    },
};

use super::bucket::{Budget, NodeBucket};

/// A host's part in one key's budget.
pub(crate) struct Part {
    pub(crate) bucket: NodeBucket,
    /// In tokens a second.
    pub(crate) demand: u64,
    /// Remaining demand, below one token.
    pub(crate) rest: u64,
}

pub(crate) struct Host {
    budget: Budget,
    /// The host's part of a key is its number among `parts`.
    leases: Leases<usize>,
    pub(crate) parts: Vec<Part>,
    offset: u64,
    drift_ppm: i64,
    /// Until these times the daemon is down, stalled, or cut off from the store.
    pub(crate) down_until: Option<u64>,
    pub(crate) stalled_until: u64,
    pub(crate) cut_until: u64,
    pub(crate) admitted: u64,
    /// How often a lease has grown, and been lowered for others.
    pub(crate) grown: u64,
    pub(crate) lowered: u64,
    pub(crate) reported: u64,
    pub(crate) refused: u64,
    pub(crate) entries: u64,
}

impl Host {
    pub(crate) fn new(
        name: &str,
        most_nodes: u32,
        keys: usize,
        budget: Budget,
        (offset, drift_ppm): (u64, i64),
    ) -> Self {
        let node = Name::try_from(name).expect("a name");
        let leases = Leases::new(node, most_nodes, offset);
        let part = || Part {
            bucket: NodeBucket::new(budget, leases.minimum(), offset),
            demand: 0,
            rest: 0,
        };
        Self {
            budget,
            parts: (0..keys).map(|_| part()).collect(),
            leases,
            offset,
            drift_ppm,
            down_until: None,
            stalled_until: 0,
            cut_until: 0,
            admitted: 0,
            grown: 0,
            lowered: 0,
            reported: 0,
            refused: 0,
            entries: 0,
        }
    }

    pub(crate) fn local(&self, now: u64) -> u64 {
        let drift = i128::from(now) * i128::from(self.drift_ppm) / 1_000_000;
        let local = i128::from(self.offset) + i128::from(now) + drift;
        u64::try_from(local).expect("clocks begin late")
    }

    /// Starts the daemon. The programs keep their shares.
    pub(crate) fn start(&mut self, local: u64) {
        self.down_until = None;
        let (node, nodes) = (self.leases.node.clone(), self.leases.nodes);
        self.leases = Leases::new(node, nodes, local);
    }

    /// Begins again, as after a refusal by the kernel: the programs keep their shares.
    pub(crate) fn begin_again(&mut self) {
        self.leases.restart();
    }

    /// Does the daemon's work of a fifth of a second; returns a call.
    pub(crate) fn tick(&mut self, local: u64) -> Option<Call> {
        self.leases.restart_if_lapsed(local);
        let (ends, minimum) = (self.leases.ends_ns(), self.leases.minimum());
        for (number, part) in self.parts.iter_mut().enumerate() {
            let key = self.leases.keys.entry(name_of(number));
            let lease = &mut key.or_insert_with(|| active(number, self.budget)).lease;
            let need = wanted(part.demand, self.budget).without(minimum);
            lease.want(Need::of(need), local);
            if let Some(to) = lease.lowers_to() {
                let returned = part.bucket.change(local, minimum + to, 0, ends);
                lease.lower(to, returned);
                self.lowered += 1;
            }
        }
        let call = self.leases.call(local)?;
        self.entries += call.arguments.len().saturating_sub(6) as u64 / 5;
        Some(call)
    }

    pub(crate) fn give_up(&mut self, call: CallId) {
        self.leases.give_up(call);
    }

    pub(crate) fn receive(&mut self, local: u64, call: CallId, reply: &Reply) {
        let is_awaited = self.leases.awaits(call);
        match self.leases.receive(call, reply) {
            Effect::Changes(changes) => {
                self.reported += u64::from(is_awaited && *reply == Reply::Lost);
                self.set(local, &changes);
            }
            Effect::Over(keys) => {
                self.refused += u64::from(*reply != Reply::Lost);
                for key in keys.values() {
                    let bucket = &mut self.parts[key.host].bucket;
                    bucket.change(local, self.leases.minimum(), 0, u64::MAX);
                }
            }
        }
    }

    /// Sets shares and their end in the programs.
    fn set(&mut self, local: u64, changes: &HashMap<KeyName, Change>) {
        let ends = self.leases.ends_ns();
        for (name, key) in &self.leases.keys {
            let (bucket, change) = (&mut self.parts[key.host].bucket, changes.get(name));
            let share = self.leases.minimum() + key.lease.held();
            let tokens = change.map_or(0, |change| change.tokens);
            let grows = share > bucket.share(local);
            self.grown += u64::from(change.is_some() && grows);
            if key.lease.held() > Share::NONE || change.is_some() {
                bucket.change(local, share, tokens, ends);
            }
        }
    }

    /// Checks the most that a lease may last.
    pub(crate) fn check(&self, local: u64) {
        assert!(self.leases.ends_ns() <= local + LEASE_NS);
    }
}

fn name_of(number: usize) -> KeyName {
    let mut name = [0; 36];
    name[28..].copy_from_slice(&(number as u64).to_be_bytes());
    name
}

fn active(number: usize, budget: Budget) -> ActiveKey<usize> {
    ActiveKey {
        lease: Lease::default(),
        fill_ms: budget.fill_ms(),
        host: number,
    }
}

/// The share that would admit all packets: an eighth above the demand, to absorb uneven arrival.
fn wanted(demand: u64, budget: Budget) -> Share {
    let wanted = demand * 1_000 * 9 / 8;
    let share = u128::from(wanted) * 1_000_000_000 / u128::from(budget.rate);
    Share::billionths(u64::try_from(share).unwrap_or(u64::MAX))
}
