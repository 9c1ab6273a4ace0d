//! A hot owner: its budget moves among the nodes.

use limiter_common::{
    key::BucketKey,
    strategy::gcra::{KeyShare, Parts, ShareWord},
};
use limiter_fleet::{
    Bucket, Budget, Entry, Header, Loan, Memory, Node, NodeId, Payload, Request, Share, Stakes,
};

use super::{
    bucket::{ChangeError, Rehearsal, ShareBucket, parts_of},
    demand::{Demand, scaled},
    lever::Host,
};

/// How long before its end a loan counts as over, in nanoseconds: longer than a calculation takes.
const MARGIN_NS: u64 = 50_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// A time long enough for many tokens, in nanoseconds.
pub(super) const WHOLE_NS: u64 = 1_000 * SECOND_NS;

/// An act for an owner.
pub(super) enum Act {
    /// Poll the packets' demand.
    Poll,
    /// Handle a request.
    Request(Header, Request),
    /// Handle a reply.
    Loan(Header, Loan),
    /// Handle a bank's hint of its present reply.
    Changed(NodeId, Share),
}

impl Act {
    /// Returns whether another node needs the share held here.
    const fn is_others(&self) -> bool {
        matches!(self, Self::Request(..) | Self::Changed(..))
    }
}

/// A time without anything to do, under these conditions.
#[derive(Clone, Copy, Default)]
struct Calm {
    until_ns: u64,
    wanted: Share,
    lapses: u64,
}

/// The next step that an owner needs.
pub(super) enum Due {
    Nothing,
    /// A poll.
    Act,
    /// This word for the kernel: the same share with a later end, so the bucket's tokens need no
    /// conversion.
    Lengthened(KeyShare),
}

pub(super) struct Hot {
    pub(super) key: BucketKey,
    pub(super) budget: Budget,
    stakes: Stakes,
    pub(super) home: Share,
    /// `None`: it starts later, as after a crash.
    node: Option<Box<Node>>,
    begins_ns: u64,
    demand: Demand,
    /// The tokens of the whole budget that come back in [`WHOLE_NS`].
    whole: u64,
    pub(super) wanted: Share,
    /// Whether the demand is below the estimate from before a request of another node, so that there is a
    /// share to return.
    has_less: bool,
    /// Since when the demand has not exceeded the home share, in nanoseconds.
    quiet_since_ns: u64,
    /// The owner's word in the kernel.
    word: KeyShare,
    /// The share that the bucket's tokens match, and the end of the word that set it.
    counted: (Parts, u64),
    /// The number of the last poll that found it in the kernel.
    pub(super) seen: u64,
    /// Until when there is nothing to do, at this demand and with running renewals; 0: unknown.
    calm: Calm,
}

impl Hot {
    /// Begins with the kernel's word for the owner. `whole`: the tokens of the whole budget that come back
    /// in [`WHOLE_NS`]; `each`: the approximate demand of a packet, in tokens.
    pub(super) fn new(
        key: BucketKey,
        budget: Budget,
        stakes: Stakes,
        id: NodeId,
        word: KeyShare,
        (whole, each): (u64, u64),
    ) -> Self {
        Self {
            key,
            budget,
            home: stakes.home(id),
            stakes,
            node: None,
            begins_ns: 0,
            demand: Demand::new(each),
            whole,
            wanted: Share::NONE,
            has_less: false,
            quiet_since_ns: 0,
            word,
            counted: (Parts::LEAST, 0),
            seen: 0,
            calm: Calm::default(),
        }
    }

    /// Takes the packets' demand and the kernel's word.
    pub(super) fn poll(&mut self, share: &KeyShare, now_ns: u64, id: NodeId) {
        if (share.word, share.after) != (self.word.word, self.word.after) {
            self.calm.until_ns = 0;
        }
        self.word = *share;
        let tokens = self.demand.poll(share.wanted, now_ns);
        self.wanted = self.part_of(tokens);
        if self.wanted > self.home || self.quiet_since_ns == 0 {
            self.quiet_since_ns = now_ns;
        }
        if self.node.is_none() && now_ns >= self.begins_ns {
            self.node = Some(Box::new(Node::new(&self.stakes, id)));
        }
    }

    /// Returns the share for a rate in tokens a second, plus a quarter to absorb uneven traffic.
    fn part_of(&self, tokens: u64) -> Share {
        const A_QUARTER_MORE: u64 = Share::WHOLE.in_billionths() * (WHOLE_NS / SECOND_NS) * 5 / 4;
        Share::billionths(scaled(tokens, A_QUARTER_MORE, self.whole))
    }

    /// Does the regular work: marks loans for renewal, forgets borrowers without a loan, and sends hints.
    /// Returns any further step. `lapses`: how many runs of renewals have lapsed. Most of the time there is
    /// nothing to do.
    pub(super) fn attend(
        &mut self,
        now_ns: u64,
        lapses: u64,
        memory: &mut Memory,
        mut send: impl FnMut(NodeId, Entry),
    ) -> Due {
        let calm = &self.calm;
        if now_ns < calm.until_ns && (calm.wanted, calm.lapses) == (self.wanted, lapses) {
            return Due::Nothing;
        }
        let Some(node) = &mut self.node else {
            return Due::Nothing;
        };
        node.record_use(now_ns, memory);
        node.tidy(now_ns, memory);
        let budget = self.budget;
        node.hint(now_ns, self.wanted, memory, |to, payload| {
            send(to, Entry { budget, payload });
        });
        let (due, until_ns) = self.due(now_ns, memory);
        self.calm = Calm {
            until_ns,
            wanted: self.wanted,
            lapses,
        };
        due
    }

    /// Returns the next step, and until when there will be none.
    fn due(&self, now_ns: u64, memory: &Memory) -> (Due, u64) {
        let Some(node) = &self.node else {
            return (Due::Nothing, 0);
        };
        let (share, until_ns) = self.in_force(now_ns);
        // A loan about to end is not worth setting.
        let soon = node.in_force(now_ns.saturating_add(MARGIN_NS), memory);
        if parts_of(soon.share) != share
            || (soon.until.is_none() && until_ns != FOREVER)
            || node.would_act(now_ns, self.wanted, memory)
        {
            return (Due::Act, 0);
        }
        let calm_ns = node.calm_until(now_ns, memory).saturating_sub(MARGIN_NS);
        // As late as possible, with time for one lost renewal.
        let lengthens_ns = match until_ns {
            FOREVER => u64::MAX,
            until_ns => until_ns.saturating_sub(memory.terms().loan_ns / 5 * 2),
        };
        match soon.until {
            Some(later_ns) if now_ns >= lengthens_ns && later_ns > until_ns => {
                let word = ShareWord::new(share, later_ns);
                (Due::Lengthened(KeyShare { word, ..self.word }), 0)
            }
            _ => (Due::Nothing, calm_ns.min(lengthens_ns)),
        }
    }

    /// Returns the share that the bucket's tokens match, and the end of the word that set it.
    fn in_force(&self, now_ns: u64) -> (Parts, u64) {
        let word = self.word.word;
        if word.holds(now_ns.saturating_add(MARGIN_NS)) {
            let until_ns = word.until_ns();
            (
                word.parts(),
                if until_ns >= FOREVER {
                    FOREVER
                } else {
                    until_ns
                },
            )
        } else {
            (self.after(), FOREVER)
        }
    }

    const fn after(&self) -> Parts {
        KeyShare {
            word: ShareWord::NONE,
            ..self.word
        }
        .in_force(0)
    }

    /// Plans acts, in `place`, where an earlier owner's plan may be reused. Returns the word that the
    /// kernel must have before they are carried out; `None`: the present one.
    pub(super) fn rehearse(
        &mut self,
        now_ns: u64,
        acts: &[(u32, Act)],
        memory: &mut Memory,
        place: &mut Option<Node>,
    ) -> Option<KeyShare> {
        let before = self.wanted;
        if before > Share::NONE && acts.iter().any(|(_, act)| act.is_others()) {
            let tokens = self.demand.doubt();
            self.wanted = self.part_of(tokens);
        }
        self.has_less = self.wanted < before;
        let node = self.node.as_deref()?;
        self.calm.until_ns = 0;
        self.counted = self.in_force(now_ns);
        let loses_nothing = |(_, act): &(u32, Act)| match act {
            Act::Loan(header, loan) => node.loses_nothing(now_ns, header, loan, memory),
            _ => false,
        };
        let least = if acts.iter().all(loses_nothing) {
            node.in_force(now_ns, memory).share
        } else {
            let wanted = (self.wanted, self.has_less);
            rehearsed(node, now_ns, wanted, acts, memory, place)
        };
        let least = parts_of(least);
        let (word, after) = (self.word.word, self.after());
        if least >= word.or(after, now_ns) {
            return None;
        }
        let lowered = if word.holds(now_ns) {
            KeyShare::new(ShareWord::new(least, word.until_ns()), after.min(least))
        } else {
            KeyShare::new(ShareWord::forever(least), least)
        };
        self.set(lowered);
        Some(lowered)
    }

    /// Carries out the planned acts. After an error, the protocol and the kernel disagree.
    pub(super) fn perform<H: Host>(
        &mut self,
        host: H,
        now_ns: u64,
        acts: &[(u32, Act)],
        memory: &mut Memory,
        mut send: impl FnMut(NodeId, Entry),
    ) -> Result<(), ChangeError> {
        let least = self.word.word.or(self.after(), now_ns);
        let Some(node) = &mut self.node else {
            return Ok(());
        };
        let budget = self.budget;
        let mut bucket = ShareBucket::new(host, self.key, self.counted.0, least);
        let send = |to, payload| send(to, Entry { budget, payload });
        let wanted = (self.wanted, self.has_less);
        perform(node, now_ns, wanted, acts, memory, &mut bucket, send);
        self.counted.0 = bucket.share;
        bucket.error.map_or(Ok(()), Err)
    }

    /// Returns the word to set in the kernel after a batch that began at `begun_ns`; `None`: the present
    /// one.
    pub(super) fn finished(
        &mut self,
        begun_ns: u64,
        now_ns: u64,
        memory: &Memory,
    ) -> Result<Option<KeyShare>, ChangeError> {
        let Some(node) = &self.node else {
            return Ok(None);
        };
        let (share, counted_until_ns) = self.counted;
        if now_ns >= counted_until_ns {
            return Err(ChangeError::Overtaken);
        }
        let in_force = node.in_force(begun_ns, memory);
        let until_ns = in_force.until.unwrap_or(u64::MAX);
        let word = KeyShare::new(ShareWord::new(share, until_ns), parts_of(in_force.own));
        let is_other = (word.word, word.after) != (self.word.word, self.word.after);
        self.set(word);
        Ok(is_other.then_some(word))
    }

    /// Returns whether the word still holds.
    pub(super) const fn holds(&self, now_ns: u64) -> bool {
        self.word.word.holds(now_ns)
    }

    /// Records the word set in the kernel.
    pub(super) const fn set(&mut self, word: KeyShare) {
        (self.word.word, self.word.after) = (word.word, word.after);
    }

    /// Starts again later, as after a crash: the kernel and the protocol disagree.
    pub(super) fn fail(&mut self, memory: &mut Memory, now_ns: u64) {
        self.begins_ns = now_ns.saturating_add(memory.terms().lent_ns());
        if let Some(node) = self.node.take() {
            node.forget(now_ns, memory);
        }
    }

    /// Returns whether the owner has needed at most its home share for that long, and the kernel has it
    /// set.
    pub(super) fn is_cool(&self, now_ns: u64, for_ns: u64, memory: &Memory) -> bool {
        let home = KeyShare::new(ShareWord::forever(parts_of(self.home)), parts_of(self.home));
        let is_at_home = |node: &Node| node.is_at_home(now_ns, memory);
        (self.word.word, self.word.after) == (home.word, home.after)
            && now_ns.saturating_sub(self.quiet_since_ns) >= for_ns
            && self.node.as_deref().is_some_and(is_at_home)
    }

    pub(super) fn forget(self, now_ns: u64, memory: &mut Memory) {
        if let Some(node) = self.node {
            node.forget(now_ns, memory);
        }
    }

    /// Returns the current share.
    pub(super) fn share(&self, now_ns: u64) -> Parts {
        self.word.in_force(now_ns)
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.node.is_some()
    }
}

const FOREVER: u64 = ShareWord::forever(Parts::WHOLE).until_ns();

/// Returns the smallest share that a node will have while it carries out the acts.
fn rehearsed(
    node: &Node,
    now_ns: u64,
    wanted: (Share, bool),
    acts: &[(u32, Act)],
    memory: &mut Memory,
    place: &mut Option<Node>,
) -> Share {
    let rehearsing = match place {
        Some(place) => {
            place.clone_from(node);
            place
        }
        None => place.insert(node.clone()),
    };
    let mut bucket = Rehearsal {
        least: Share::WHOLE,
    };
    let silent = |_, _| {};
    perform(
        rehearsing,
        now_ns,
        wanted,
        acts,
        memory,
        &mut bucket,
        silent,
    );
    bucket.least
}

/// Makes the protocol carry out the acts and send the results. `has_less`: whether there may be a share to
/// return.
fn perform(
    node: &mut Node,
    now_ns: u64,
    (wanted, has_less): (Share, bool),
    acts: &[(u32, Act)],
    memory: &mut Memory,
    bucket: &mut impl Bucket,
    mut send: impl FnMut(NodeId, Payload),
) {
    let (mut requests, mut replies) = (has_less, false);
    for (_, act) in acts {
        match act {
            Act::Poll => requests = true,
            Act::Changed(from, share) => {
                node.receive_changed(*from, *share);
                requests = true;
            }
            Act::Request(header, request) => {
                node.receive_request(now_ns, (header, request), memory, bucket);
                replies = true;
            }
            Act::Loan(header, loan) => node.receive_loan(now_ns, (header, loan), memory, bucket),
        }
    }
    if requests {
        for (bank, request) in node.request(now_ns, wanted, memory, bucket) {
            send(bank, Payload::Request(request));
        }
    }
    if requests || replies {
        node.reply(now_ns, wanted, memory, bucket, send);
    }
}
