//! A node's session with the store: when it calls, and until when its leases last.

use super::{Call, CallId, Reply};

/// How long leases last from the sending of a call, by the node's clock, in nanoseconds.
pub const LEASE_NS: u64 = 3_000_000_000;

/// The pause between two calls without news, in nanoseconds: two calls may fail before leases end.
pub const RENEWAL_NS: u64 = 1_000_000_000;

/// A session. All times are of the node's monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    /// The last call; its number is 0 before the first.
    last: CallId,
    /// When all leases end; 0: there are none.
    ends_ns: u64,
    /// When the last call was sent; `None`: never.
    called_ns: Option<u64>,
    last_call: LastCall,
    state: State,
    /// The number of sessions that have ended, by the last reply.
    ended: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastCall {
    Open,
    Answered,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Leasing,
    /// The store has forgotten the session, and must be told its leases.
    Reporting,
    Refused,
}

/// The consequence of a reply for all leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All leases are renewed. Has any session ended since, there may be more for each.
    Renewed {
        /// Whether leases that lack something are to [ask again](super::Lease::ask_again).
        has_room: bool,
    },
    /// None is renewed yet.
    Unchanged,
    /// The store has forgotten all leases: each must be named again.
    Report,
    /// All leases are over.
    Over(Option<Refusal>),
}

/// Why a node gets no leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another node has its name.
    Taken,
    /// The fleet has its most nodes.
    Full,
}

impl Session {
    /// Begins. `start`: a number above the ones of all earlier sessions of this node, such as the microseconds since
    /// 1970. If the wall clock was set back since, the node waits until its earlier session is over.
    #[must_use]
    pub const fn new(start: u64) -> Self {
        Self {
            last: CallId { start, number: 0 },
            ends_ns: 0,
            called_ns: None,
            last_call: LastCall::Answered,
            state: State::Leasing,
            ended: 0,
        }
    }

    /// Begins again, after all leases are over.
    pub fn restart(&mut self, start: u64) {
        *self = Self::new(start.max(self.last.start + 1));
    }

    /// When all leases end; 0: there are none.
    #[must_use]
    pub const fn ends_ns(&self) -> u64 {
        self.ends_ns
    }

    /// Whether the leases have ended for want of a reply.
    #[must_use]
    pub const fn has_lapsed(&self, now_ns: u64) -> bool {
        self.ends_ns > 0 && now_ns >= self.ends_ns
    }

    /// Whether to call now.
    #[must_use]
    pub fn is_due(&self, now_ns: u64, has_news: bool) -> bool {
        let waits = |called_ns| now_ns.saturating_sub(called_ns) < RENEWAL_NS;
        match self.last_call {
            LastCall::Open => false,
            LastCall::Failed => true,
            LastCall::Answered => {
                let may_hurry = has_news && self.state != State::Refused;
                may_hurry || !self.called_ns.is_some_and(waits)
            }
        }
    }

    /// Begins a call, which is sent after `now_ns`.
    pub fn call(&mut self, now_ns: u64) -> Call {
        self.last.number += 1;
        let before_ns = self.called_ns.replace(now_ns).unwrap_or(now_ns);
        self.last_call = LastCall::Open;
        Call {
            id: self.last,
            elapsed_ms: (now_ns - before_ns) / 1_000_000,
            is_report: self.state == State::Reporting,
        }
    }

    /// Whether a reply to this call is awaited.
    #[must_use]
    pub fn awaits(&self, call: CallId) -> bool {
        self.last_call == LastCall::Open && call == self.last
    }

    /// Gives up the open call: it has no reply, or its reply comes too late.
    pub fn give_up(&mut self) {
        if self.last_call == LastCall::Open {
            self.last_call = LastCall::Failed;
        }
    }

    /// Takes the reply to the open call. `is_reported`: the store has been told all leases that it has forgotten.
    pub fn receive(&mut self, reply: &Reply, is_reported: bool) -> Outcome {
        self.last_call = LastCall::Answered;
        let is_reporting = self.state == State::Reporting;
        match reply {
            Reply::Renewed { .. } if is_reporting && !is_reported => Outcome::Unchanged,
            Reply::Renewed { ended, .. } => {
                let has_room = std::mem::replace(&mut self.ended, *ended) != *ended;
                self.state = State::Leasing;
                self.ends_ns = self.called_ns.unwrap_or_default() + LEASE_NS;
                Outcome::Renewed { has_room }
            }
            Reply::Old => Outcome::Unchanged,
            Reply::Lost if !is_reporting && self.ends_ns > 0 => {
                self.state = State::Reporting;
                Outcome::Report
            }
            Reply::Lost => self.over(None),
            Reply::Taken => self.over(Some(Refusal::Taken)),
            Reply::Full => self.over(Some(Refusal::Full)),
        }
    }

    /// Ends all leases. A refused node calls on in the same session; a forgotten one must [restart](Self::restart).
    const fn over(&mut self, refusal: Option<Refusal>) -> Outcome {
        self.ends_ns = 0;
        self.state = match refusal {
            Some(_) => State::Refused,
            None => State::Leasing,
        };
        Outcome::Over(refusal)
    }
}
