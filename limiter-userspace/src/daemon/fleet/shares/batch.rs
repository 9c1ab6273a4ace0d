//! Acts for many owners at once: a poll of packets' demand, or some messages.
//!
//! All acts are planned first, for all owners. So every share that shrinks is lowered before any act is
//! carried out, with a single wait for running programs.

use limiter_common::{key::BucketKey, strategy::gcra::KeyShare};
use limiter_fleet::{Entry, LimitName, Memory, Node, NodeId};

use super::{hot::Act, lever::Host, owners::Owners};

/// An act, with the number of its owner.
pub(super) type Due = (u32, Act);

/// The result of a batch.
#[derive(Default)]
pub(super) struct Done {
    /// Entries to send, each with its receiver.
    pub(super) entries: Vec<(NodeId, Entry)>,
    /// The limits of owners that must start again, each with the error.
    pub(super) failed: Vec<(LimitName, String)>,
}

/// Plans and carries out acts for many owners.
pub(super) fn run<H: Host>(
    owners: &mut Owners,
    memory: &mut Memory,
    host: H,
    now_ns: u64,
    mut acts: Vec<Due>,
) -> Done {
    // A stable sort: acts of one owner stay in order.
    acts.sort_by_key(|(number, _)| *number);
    let acts: Vec<&[Due]> = acts.chunk_by(|one, next| one.0 == next.0).collect();
    let mut batch = Batch {
        owners,
        memory,
        acts: &acts,
        failed: Vec::new(),
    };
    let lowered = batch.rehearse(now_ns);
    if !lowered.is_empty()
        && let Err(error) = host.set_key_shares(&lowered).and_then(|()| host.wait())
    {
        batch.fail_all(&error.to_string(), host.now_ns());
    }
    let entries = batch.perform(host, now_ns);
    let done_ns = host.now_ns();
    let words = batch.finished(now_ns, done_ns);
    if !words.is_empty()
        && let Err(error) = host.set_key_shares(&words)
    {
        batch.fail_all(&error.to_string(), done_ns);
    }
    // Do not announce acts that failed.
    let entries = entries
        .into_iter()
        .filter(|(number, ..)| batch.has_begun(*number));
    Done {
        entries: entries.map(|(_, to, entry)| (to, entry)).collect(),
        failed: batch.failed,
    }
}

struct Batch<'b> {
    owners: &'b mut Owners,
    memory: &'b mut Memory,
    /// Grouped by owner.
    acts: &'b [&'b [Due]],
    failed: Vec<(LimitName, String)>,
}

impl Batch<'_> {
    /// Plans all acts; returns the lowered shares, by key.
    fn rehearse(&mut self, now_ns: u64) -> Vec<(BucketKey, KeyShare)> {
        let mut lowered = Vec::new();
        let mut place: Option<Node> = None;
        for (number, acts) in numbered(self.acts) {
            if let Some(owner) = self.owners.at(number)
                && let Some(word) = owner.rehearse(now_ns, acts, self.memory, &mut place)
            {
                lowered.push((owner.key, word));
            }
        }
        lowered
    }

    /// Carries out the planned acts; returns the entries to send, each with its owner and receiver.
    fn perform<H: Host>(&mut self, host: H, now_ns: u64) -> Vec<(u32, NodeId, Entry)> {
        let mut entries = Vec::new();
        for (number, acts) in numbered(self.acts) {
            let Some(owner) = self.owners.at(number) else {
                continue;
            };
            let send = |to, entry| entries.push((number, to, entry));
            let done = owner.perform(host, now_ns, acts, self.memory, send);
            if let Err(error) = done {
                self.fail(number, &error.to_string(), host.now_ns());
            }
        }
        entries
    }

    /// Returns the changed shares, by key.
    fn finished(&mut self, begun_ns: u64, done_ns: u64) -> Vec<(BucketKey, KeyShare)> {
        let mut words = Vec::new();
        for (number, _) in numbered(self.acts) {
            let Some(owner) = self.owners.at(number) else {
                continue;
            };
            match owner.finished(begun_ns, done_ns, self.memory) {
                Ok(word) => words.extend(word.map(|word| (owner.key, word))),
                Err(error) => self.fail(number, &error.to_string(), done_ns),
            }
        }
        words
    }

    /// Makes an owner start again after an error.
    fn fail(&mut self, number: u32, error: &str, now_ns: u64) {
        if let Some(owner) = self.owners.at(number) {
            owner.fail(self.memory, now_ns);
            self.failed.push((owner.budget.limit, error.to_owned()));
        }
    }

    fn fail_all(&mut self, error: &str, now_ns: u64) {
        for (number, _) in numbered(self.acts) {
            self.fail(number, error, now_ns);
        }
    }

    fn has_begun(&mut self, number: u32) -> bool {
        self.owners
            .at(number)
            .is_some_and(|owner| owner.has_begun())
    }
}

/// Pairs acts with the number of their owner.
fn numbered<'b>(acts: &'b [&'b [Due]]) -> impl Iterator<Item = (u32, &'b [Due])> {
    acts.iter()
        .filter_map(|acts| Some((acts.first()?.0, *acts)))
}
