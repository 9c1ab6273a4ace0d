//! A node's leases of all active keys, and its session with the store: when it calls, and until when its leases last.

use std::{collections::HashMap, mem};

use super::{Change, KeyName, Lease, Reply, minimum_share};
use crate::{Name, Share};

/// How long leases last from the sending of a call, by the node's clock, in nanoseconds.
pub const LEASE_NS: u64 = 3_000_000_000;

/// The pause between two calls without news, in nanoseconds: two calls may fail before leases end.
const RENEWAL_NS: u64 = 1_000_000_000;

/// The most keys that a call names: a script of some milliseconds.
const MOST_NAMED: usize = 256;

/// A key with a lease or a demand for one. `H`: its part on the host.
pub struct ActiveKey<H> {
    /// The lease.
    pub lease: Lease,
    /// The time in which the key's empty bucket fills, in milliseconds.
    pub fill_ms: u64,
    /// The host's part.
    pub host: H,
}

/// All leases of a node. Times are of the node's monotonic clock, in nanoseconds.
pub struct Leases<H> {
    /// This node.
    pub node: Name,
    /// The most nodes; each node's minimum share follows from it.
    pub nodes: u32,
    /// The active keys. The host adds and removes them.
    pub keys: HashMap<KeyName, ActiveKey<H>>,
    /// The last call; its number is 0 before the first of a session.
    last: CallId,
    /// When it was sent; `None`: there was none.
    called_ns: Option<u64>,
    state: CallState,
    /// The keys that the open call names.
    named: Vec<KeyName>,
    /// When all leases end; 0: there are none.
    ends_ns: u64,
    session: SessionState,
    /// The number of sessions that have ended, by the last reply.
    ended: u64,
}

/// A call, among all of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallId {
    /// The start of the session: a number above all earlier ones of this node.
    start: u64,
    /// Counts the calls of the session, from 1.
    number: u64,
}

/// A call of the script.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which call it is.
    pub id: CallId,
    /// The arguments of the script after the first, which the connection knows.
    pub arguments: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallState {
    Open,
    Answered,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SessionState {
    Leasing,
    /// The store has forgotten the session, and must be told its leases.
    Reporting,
    Refused,
}

/// The effect of a reply on the shares in use.
pub enum Effect<H> {
    /// These change, and all that are leased last until [`Leases::ends_ns`].
    Changes(HashMap<KeyName, Change>),
    /// All leases are over, and these keys no longer active.
    Over(HashMap<KeyName, ActiveKey<H>>),
}

impl<H> Leases<H> {
    /// Begins without leases. `start`: a number above the ones of all earlier sessions of this node, such as the
    /// microseconds since 1970. If the wall clock was set back since, the node waits until its earlier session is over.
    #[must_use]
    pub fn new(node: Name, nodes: u32, start: u64) -> Self {
        Self {
            node,
            nodes,
            keys: HashMap::new(),
            last: CallId { start, number: 0 },
            called_ns: None,
            state: CallState::Answered,
            named: Vec::new(),
            ends_ns: 0,
            session: SessionState::Leasing,
            ended: 0,
        }
    }

    /// Begins another session without leases. Shares stay in use until their end, and the store counts the earlier
    /// session until then.
    pub fn restart(&mut self) {
        *self = Self::new(self.node.clone(), self.nodes, self.last.start + 1);
    }

    /// Begins another session if the leases have ended for want of a reply.
    pub fn restart_if_lapsed(&mut self, now_ns: u64) {
        if self.ends_ns > 0 && now_ns >= self.ends_ns {
            self.restart();
        }
    }

    /// The share that this node never lends.
    #[must_use]
    pub const fn minimum(&self) -> Share {
        minimum_share(self.nodes)
    }

    /// When all leases end; 0: there are none.
    #[must_use]
    pub const fn ends_ns(&self) -> u64 {
        self.ends_ns
    }

    /// Begins a call, which is sent after `now_ns`, if there is news, or the leases must be renewed.
    pub fn call(&mut self, now_ns: u64) -> Option<Call> {
        let due = self.keys.iter().filter(|(_, key)| key.lease.is_due());
        let due: Vec<_> = due.map(|(name, _)| *name).take(MOST_NAMED).collect();
        let since_ns = self
            .called_ns
            .map(|called_ns| now_ns.saturating_sub(called_ns));
        let must_call = match self.state {
            CallState::Open => false,
            CallState::Failed => true,
            CallState::Answered => {
                let may_hurry = !due.is_empty() && self.session != SessionState::Refused;
                may_hurry || since_ns.is_none_or(|since_ns| since_ns >= RENEWAL_NS)
            }
        };
        if !must_call {
            return None;
        }
        self.last.number += 1;
        self.called_ns = Some(now_ns);
        self.state = CallState::Open;
        let number = |number: u64| number.to_string().into_bytes();
        let session = [
            self.last.start,
            self.last.number,
            since_ns.unwrap_or_default() / 1_000_000,
            self.nodes.into(),
            (self.session == SessionState::Reporting).into(),
        ];
        let mut arguments = vec![self.node.as_str().as_bytes().to_vec()];
        arguments.extend(session.map(number));
        for name in &due {
            if let Some(key) = self.keys.get_mut(name) {
                let [keeps, returned, demand] = key.lease.named();
                arguments.push(name.to_vec());
                arguments.extend([key.fill_ms, keeps, returned, demand].map(number));
            }
        }
        self.named = due;
        Some(Call {
            id: self.last,
            arguments,
        })
    }

    /// Whether a reply to this call is awaited.
    #[must_use]
    pub fn awaits(&self, call: CallId) -> bool {
        self.state == CallState::Open && call == self.last
    }

    /// Gives up a call: it has no reply, or its reply comes too late.
    pub fn give_up(&mut self, call: CallId) {
        if self.awaits(call) {
            self.state = CallState::Failed;
            self.name_again();
        }
    }

    /// Names the keys of the call again, except those with a grant.
    fn name_again(&mut self) {
        for name in mem::take(&mut self.named) {
            if let Some(key) = self.keys.get_mut(&name) {
                key.lease.name_again();
            }
        }
    }

    /// Takes the reply to a call. The host carries out the effect.
    pub fn receive(&mut self, call: CallId, reply: &Reply) -> Effect<H> {
        let mut changes = HashMap::new();
        if !self.awaits(call) {
            return Effect::Changes(changes);
        }
        self.state = CallState::Answered;
        let is_reporting = self.session == SessionState::Reporting;
        match reply {
            Reply::Renewed {
                ended,
                grants,
                hints,
                ..
            } => {
                let answered = grants.len().min(self.named.len());
                for (name, grant) in self.named.drain(..answered).zip(grants) {
                    let key = self.keys.get_mut(&name);
                    let change = key.and_then(|key| key.lease.receive(*grant));
                    changes.extend(change.map(|change| (name, change)));
                }
                for (name, goal) in hints {
                    if let Some(key) = self.keys.get_mut(name) {
                        key.lease.hint(*goal);
                    }
                }
                self.name_again();
                let mut keys = self.keys.values();
                if !(is_reporting && keys.any(|key| key.lease.is_unreported())) {
                    self.renew(*ended);
                }
            }
            Reply::Old => self.name_again(),
            Reply::Lost if !is_reporting && self.ends_ns > 0 => {
                self.session = SessionState::Reporting;
                self.named.clear();
                for key in self.keys.values_mut() {
                    key.lease.name_again();
                }
            }
            Reply::Lost => {
                let keys = mem::take(&mut self.keys);
                self.restart();
                return Effect::Over(keys);
            }
            // It calls on in the same session: another start would drive the rival out.
            Reply::Taken | Reply::Full => {
                self.session = SessionState::Refused;
                self.ends_ns = 0;
                self.named.clear();
                return Effect::Over(mem::take(&mut self.keys));
            }
        }
        Effect::Changes(changes)
    }

    fn renew(&mut self, ended: u64) {
        self.session = SessionState::Leasing;
        self.ends_ns = self.called_ns.unwrap_or_default() + LEASE_NS;
        if mem::replace(&mut self.ended, ended) != ended {
            for key in self.keys.values_mut() {
                key.lease.ask_again();
            }
        }
    }
}
