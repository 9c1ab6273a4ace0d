//! Acts for many owners at once: a look at what packets want, or some letters.
//!
//! It is rehearsed for all owners that it touches, so that whatever becomes smaller does before anything is
//! done, with one wait for the programs that run.

use std::collections::HashMap;

use limiter_common::{owner::BucketKey, strategy::gcra::OwnerShare};
use limiter_fleet::{LimitName, Memory, NodeId, Note};

use super::{
    hot::{Act, Hot},
    lever::Host,
};

/// The outcome of a batch.
#[derive(Default)]
pub(super) struct Done {
    /// Notes to be sent, and to whom.
    pub(super) said: Vec<(NodeId, Note)>,
    /// The limits of owners that begin anew, and why.
    pub(super) failed: Vec<(LimitName, String)>,
}

/// Does something with many owners, each of which is hot.
pub(super) fn run<H: Host>(
    owners: &mut HashMap<BucketKey, Hot>,
    memory: &mut Memory,
    host: H,
    now_ns: u64,
    acts: &[(BucketKey, Act)],
) -> Done {
    let mut batch = Batch {
        owners,
        memory,
        failed: Vec::new(),
    };
    let touched = batch.rehearse(now_ns, acts);
    let lowered = batch.lowered(&touched, now_ns);
    if !lowered.is_empty()
        && let Err(error) = host.set_owners(&lowered).and_then(|()| host.wait())
    {
        batch.fail_all(&touched, &error.to_string(), host.now_ns());
    }
    let said = batch.perform(host, now_ns, acts);
    let done_ns = host.now_ns();
    let words = batch.finished(&touched, now_ns, done_ns);
    if !words.is_empty()
        && let Err(error) = host.set_owners(&words)
    {
        batch.fail_all(&touched, &error.to_string(), done_ns);
    }
    // Nobody may hear of what was not done.
    let said = said.into_iter().filter(|(key, ..)| batch.has_begun(key));
    Done {
        said: said.map(|(_, to, note)| (to, note)).collect(),
        failed: batch.failed,
    }
}

struct Batch<'b> {
    owners: &'b mut HashMap<BucketKey, Hot>,
    memory: &'b mut Memory,
    failed: Vec<(LimitName, String)>,
}

impl Batch<'_> {
    /// Rehearses all acts; returns whom they touch.
    fn rehearse(&mut self, now_ns: u64, acts: &[(BucketKey, Act)]) -> Vec<BucketKey> {
        let mut touched = Vec::new();
        for (key, act) in acts {
            if let Some(owner) = self.owners.get_mut(key)
                && owner.rehearse(now_ns, act, self.memory)
            {
                touched.push(*key);
            }
        }
        touched
    }

    /// Returns the words of owners that become smaller.
    fn lowered(&mut self, touched: &[BucketKey], now_ns: u64) -> Vec<(BucketKey, OwnerShare)> {
        let lowered = touched.iter().filter_map(|key| {
            let word = self.owners.get_mut(key)?.lowered(now_ns)?;
            Some((*key, word))
        });
        lowered.collect()
    }

    /// Does what was rehearsed; returns what is to be said, and by whom.
    fn perform<H: Host>(
        &mut self,
        host: H,
        now_ns: u64,
        acts: &[(BucketKey, Act)],
    ) -> Vec<(BucketKey, NodeId, Note)> {
        let mut said = Vec::new();
        for (key, act) in acts {
            let Some(owner) = self.owners.get_mut(key) else {
                continue;
            };
            let say = |to, note| said.push((*key, to, note));
            let done = owner.perform((host, key), now_ns, act, self.memory, say);
            if let Err(error) = done {
                self.fail(key, &error.to_string(), host.now_ns());
            }
        }
        said
    }

    /// Returns the words that change.
    fn finished(
        &mut self,
        touched: &[BucketKey],
        begun_ns: u64,
        done_ns: u64,
    ) -> Vec<(BucketKey, OwnerShare)> {
        let mut words = Vec::new();
        for key in touched {
            let owner = self.owners.get_mut(key);
            let finished = owner.map(|owner| owner.finished(begun_ns, done_ns, self.memory));
            match finished {
                Some(Ok(word)) => words.extend(word.map(|word| (*key, word))),
                Some(Err(error)) => self.fail(key, &error.to_string(), done_ns),
                None => {}
            }
        }
        words
    }

    /// Has an owner begin anew.
    fn fail(&mut self, key: &BucketKey, error: &str, now_ns: u64) {
        if let Some(owner) = self.owners.get_mut(key) {
            owner.fail(self.memory, now_ns);
            self.failed.push((owner.budget.limit, error.to_owned()));
        }
    }

    fn fail_all(&mut self, keys: &[BucketKey], error: &str, now_ns: u64) {
        for key in keys {
            self.fail(key, error, now_ns);
        }
    }

    fn has_begun(&self, key: &BucketKey) -> bool {
        self.owners.get(key).is_some_and(Hot::has_begun)
    }
}
