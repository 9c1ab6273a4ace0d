//! A host: the daemon's work for each key, and the buckets that outlive a crash of the daemon.

use limiter_fleet::{
    Name, Share,
    lease::{
        CallId, Change, Entry, LEASE_NS, Lease, MOST_ENTRIES, Need, Outcome, Reply, Session,
        minimum_share,
    },
};

use super::bucket::{Budget, NodeBucket};

/// A host's part in one key's budget.
pub(crate) struct Part {
    pub(crate) lease: Lease,
    pub(crate) bucket: NodeBucket,
    /// In tokens a second.
    pub(crate) demand: u64,
    /// Remaining demand, below one token.
    pub(crate) rest: u64,
}

pub(crate) struct Host {
    name: Name,
    minimum: Share,
    budget: Budget,
    most_nodes: u32,
    session: Session,
    pub(crate) parts: Vec<Part>,
    /// The parts that the open call names.
    named: Vec<usize>,
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
        let minimum = minimum_share(most_nodes);
        let part = || Part {
            lease: Lease::default(),
            bucket: NodeBucket::new(budget, minimum, offset),
            demand: 0,
            rest: 0,
        };
        Self {
            name: Name::try_from(name).expect("a name"),
            minimum,
            budget,
            most_nodes,
            session: Session::new(offset),
            parts: (0..keys).map(|_| part()).collect(),
            named: Vec::new(),
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
        self.session = Session::new(local);
        self.forget();
    }

    /// Begins again, as after a refusal by the kernel: the programs keep their shares.
    pub(crate) fn begin_again(&mut self, local: u64) {
        self.session.restart(local);
        self.forget();
    }

    fn forget(&mut self) {
        self.named.clear();
        for part in &mut self.parts {
            part.lease = Lease::default();
        }
    }

    /// Does the daemon's work of a fifth of a second; returns the arguments of a call.
    pub(crate) fn tick(&mut self, local: u64) -> Option<(CallId, Vec<Vec<u8>>)> {
        if self.session.has_lapsed(local) {
            self.begin_again(local);
        }
        let ends = self.session.ends_ns();
        for part in &mut self.parts {
            let need = wanted(part.demand, self.budget).without(self.minimum);
            part.lease.want(Need::of(need), local);
            if let Some(to) = part.lease.lowers_to() {
                let returned = part.bucket.change(local, self.minimum + to, 0, ends);
                part.lease.lower(to, returned);
                self.lowered += 1;
            }
        }
        let due = (0..self.parts.len()).filter(|number| self.parts[*number].lease.is_due());
        let due: Vec<_> = due.take(MOST_ENTRIES).collect();
        if !self.session.is_due(local, !due.is_empty()) {
            return None;
        }
        let call = self.session.call(local);
        let fill_ms = self.budget.fill_ms();
        let keys: Vec<_> = due
            .iter()
            .map(|number| number.to_string().into_bytes())
            .collect();
        let entries: Vec<Entry> = due
            .iter()
            .map(|number| self.parts[*number].lease.entry())
            .collect();
        self.entries += entries.len() as u64;
        let entries =
            (keys.iter().zip(entries)).map(|(key, entry)| (key.as_slice(), fill_ms, entry));
        let arguments = call.arguments(&self.name, self.most_nodes, entries);
        self.named = due;
        Some((call.id(), arguments))
    }

    /// Gives up the open call.
    pub(crate) fn give_up(&mut self) {
        self.session.give_up();
        for number in std::mem::take(&mut self.named) {
            self.parts[number].lease.name_again();
        }
    }

    pub(crate) fn receive(&mut self, local: u64, call: CallId, reply: &Reply) {
        if !self.session.awaits(call) {
            return;
        }
        let named = std::mem::take(&mut self.named);
        let mut changes: Vec<Option<Change>> = vec![None; self.parts.len()];
        if let Reply::Renewed { grants, hints, .. } = reply {
            for (number, grant) in named.iter().zip(grants) {
                changes[*number] = self.parts[*number].lease.receive(*grant);
            }
            for (key, goal) in hints {
                let number: usize = String::from_utf8_lossy(key).parse().expect("a number");
                self.parts[number].lease.hint(*goal);
            }
        } else {
            for number in named {
                self.parts[number].lease.name_again();
            }
        }
        let is_reported = !self.parts.iter().any(|part| part.lease.is_unreported());
        match self.session.receive(reply, is_reported) {
            Outcome::Renewed { has_room } => {
                self.set(local, &changes);
                for part in self.parts.iter_mut().filter(|_| has_room) {
                    part.lease.ask_again();
                }
            }
            Outcome::Unchanged => self.set(local, &changes),
            Outcome::Report => {
                self.reported += 1;
                for part in &mut self.parts {
                    part.lease.name_again();
                }
            }
            Outcome::Over(refusal) => {
                for part in &mut self.parts {
                    part.bucket.change(local, self.minimum, 0, u64::MAX);
                }
                self.forget();
                match refusal {
                    None => self.session.restart(local),
                    Some(_) => self.refused += 1,
                }
            }
        }
    }

    /// Sets shares and their end in the programs.
    fn set(&mut self, local: u64, changes: &[Option<Change>]) {
        let ends = self.session.ends_ns();
        for (part, change) in self.parts.iter_mut().zip(changes) {
            let share = self.minimum + part.lease.held();
            let tokens = change.map_or(0, |change| change.tokens);
            let grows = share > part.bucket.share(local);
            self.grown += u64::from(change.is_some() && grows);
            if part.lease.held() > Share::NONE || change.is_some() {
                part.bucket.change(local, share, tokens, ends);
            }
        }
    }

    /// Checks the most that a lease may last.
    pub(crate) fn check(&self, local: u64) {
        assert!(self.session.ends_ns() <= local + LEASE_NS);
    }
}

/// The share that would admit all packets: an eighth above the demand, to absorb uneven arrival.
fn wanted(demand: u64, budget: Budget) -> Share {
    let wanted = demand * 1_000 * 9 / 8;
    let share = u128::from(wanted) * 1_000_000_000 / u128::from(budget.rate);
    Share::billionths(u64::try_from(share).unwrap_or(u64::MAX))
}
