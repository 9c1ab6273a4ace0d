//! A hot owner: one whose budget moves among the nodes.

use limiter_common::{
    owner::BucketKey,
    strategy::gcra::{OwnerShare, Parts, ShareWord},
};
use limiter_fleet::{
    Ask, Bucket, Budget, Header, Loan, Memory, Message, Node, NodeId, Note, Share, Stakes,
};

use super::{
    bucket::{ChangeError, Rehearsal, ShareBucket, parts_of},
    demand::{Demand, scaled},
    lever::Host,
};

/// How long before its end a loan is counted as over, in nanoseconds: longer than it takes to count.
const MARGIN_NS: u64 = 50_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// A time that is long enough for many tokens, in nanoseconds.
pub(super) const WHOLE_NS: u64 = 1_000 * SECOND_NS;

/// Something to do with an owner.
pub(super) enum Act {
    /// To ask for what packets want.
    Look,
    /// To hear a question.
    Ask(Header, Ask),
    /// To hear an answer.
    Loan(Header, Loan),
    /// To hear that a bank would answer that now.
    Changed(NodeId, Share),
}

impl Act {
    /// Returns whether another node needs what is had here.
    const fn is_others(&self) -> bool {
        matches!(self, Self::Ask(..) | Self::Changed(..))
    }
}

/// A time in which there is nothing to do.
#[derive(Clone, Copy, Default)]
struct Calm {
    until_ns: u64,
    wanted: Share,
    lapses: u64,
}

/// Something that is due for an owner.
pub(super) enum Due {
    Nothing,
    /// To look.
    Act,
    /// To set this word, in which the same share ends later: no bucket is to be counted for that.
    Lengthened(OwnerShare),
}

/// A hot owner.
pub(super) struct Hot {
    pub(super) key: BucketKey,
    pub(super) budget: Budget,
    stakes: Stakes,
    pub(super) home: Share,
    /// `None`: it begins later, as after a crash.
    node: Option<Box<Node>>,
    begins_ns: u64,
    demand: Demand,
    /// The tokens of the whole that come back in [`WHOLE_NS`].
    whole: u64,
    pub(super) wanted: Share,
    /// Whether less is wanted than was thought before others asked, so that it can be given back.
    has_less: bool,
    /// Since when it has not wanted more than it has at home, in nanoseconds.
    quiet_since_ns: u64,
    /// The word that the kernel has.
    word: OwnerShare,
    /// The share for which the tokens in the bucket are right, and the end of the word by which they are.
    counted: (Parts, u64),
    /// The number of the look at which the kernel had it last.
    pub(super) seen: u64,
    /// Until when nothing is due while it wants so much, and what is renewed lasts; 0: that is not known.
    calm: Calm,
}

impl Hot {
    /// Begins with what the kernel has for the owner. `whole`: the tokens of the whole that come back in [`WHOLE_NS`];
    /// `each`: how many a packet wants, about.
    pub(super) fn new(
        key: BucketKey,
        budget: Budget,
        stakes: Stakes,
        id: NodeId,
        word: OwnerShare,
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

    /// Looks at what packets want, and what the kernel has.
    pub(super) fn look(&mut self, share: &OwnerShare, now_ns: u64, id: NodeId) {
        if (share.word, share.after) != (self.word.word, self.word.after) {
            self.calm.until_ns = 0;
        }
        self.word = *share;
        let tokens = self.demand.look(share.wanted, now_ns);
        self.wanted = self.part_of(tokens);
        if self.wanted > self.home || self.quiet_since_ns == 0 {
            self.quiet_since_ns = now_ns;
        }
        if self.node.is_none() && now_ns >= self.begins_ns {
            self.node = Some(Box::new(Node::new(&self.stakes, id)));
        }
    }

    /// Returns the part of the whole that so many tokens a second are, and a quarter more, so that what comes
    /// unevenly passes, too.
    fn part_of(&self, tokens: u64) -> Share {
        const A_QUARTER_MORE: u64 = Share::WHOLE.in_billionths() * (WHOLE_NS / SECOND_NS) * 5 / 4;
        Share::billionths(scaled(tokens, A_QUARTER_MORE, self.whole))
    }

    /// Attends to what there is to do, most of the time nothing: notes what is to be renewed, forgets who has borrowed and has
    /// nothing any more, and says who is to ask anew. Returns what else is due. `lapses`: how often renewals have ceased.
    pub(super) fn attend(
        &mut self,
        now_ns: u64,
        lapses: u64,
        memory: &mut Memory,
        mut say: impl FnMut(NodeId, Note),
    ) -> Due {
        let calm = &self.calm;
        if now_ns < calm.until_ns && (calm.wanted, calm.lapses) == (self.wanted, lapses) {
            return Due::Nothing;
        }
        let Some(node) = &mut self.node else {
            return Due::Nothing;
        };
        node.note_use(now_ns, memory);
        node.tidy(now_ns, memory);
        let budget = self.budget;
        node.hint(now_ns, self.wanted, memory, |to, message| {
            say(to, Note { budget, message });
        });
        let (due, until_ns) = self.due(now_ns, memory);
        self.calm = Calm {
            until_ns,
            wanted: self.wanted,
            lapses,
        };
        due
    }

    /// Returns what is due, and until when nothing will be.
    fn due(&self, now_ns: u64, memory: &Memory) -> (Due, u64) {
        let Some(node) = &self.node else {
            return (Due::Nothing, 0);
        };
        let (share, until_ns) = self.in_force(now_ns);
        // A loan that ends soon need not be put in force for that long.
        let soon = node.in_force(now_ns.saturating_add(MARGIN_NS), memory);
        if parts_of(soon.share) != share
            || (soon.until.is_none() && until_ns != FOREVER)
            || node.would_act(now_ns, self.wanted, memory)
        {
            return (Due::Act, 0);
        }
        let calm_ns = node.calm_until(now_ns, memory).saturating_sub(MARGIN_NS);
        // As late as may be, but for a renewal that is lost.
        let lengthens_ns = match until_ns {
            FOREVER => u64::MAX,
            until_ns => until_ns.saturating_sub(memory.terms().loan_ns / 5 * 2),
        };
        match soon.until {
            Some(later_ns) if now_ns >= lengthens_ns && later_ns > until_ns => {
                let word = ShareWord::new(share, later_ns);
                (Due::Lengthened(OwnerShare { word, ..self.word }), 0)
            }
            _ => (Due::Nothing, calm_ns.min(lengthens_ns)),
        }
    }

    /// Returns the share for which the tokens are right that the bucket holds, and the end of the word that says
    /// so.
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
        OwnerShare {
            word: ShareWord::NONE,
            ..self.word
        }
        .in_force(0)
    }

    /// Rehearses acts, in the place of whoever rehearsed there before; returns the word that the kernel must have before
    /// they are done. `None`: that which it has.
    pub(super) fn rehearse(
        &mut self,
        now_ns: u64,
        acts: &[(u32, Act)],
        memory: &mut Memory,
        place: &mut Option<Node>,
    ) -> Option<OwnerShare> {
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
            OwnerShare::new(ShareWord::new(least, word.until_ns()), after.min(least))
        } else {
            OwnerShare::new(ShareWord::forever(least), least)
        };
        self.set(lowered);
        Some(lowered)
    }

    /// Does what was rehearsed. With an error, the protocol and the kernel disagree.
    pub(super) fn perform<H: Host>(
        &mut self,
        host: H,
        now_ns: u64,
        acts: &[(u32, Act)],
        memory: &mut Memory,
        mut say: impl FnMut(NodeId, Note),
    ) -> Result<(), ChangeError> {
        let least = self.word.word.or(self.after(), now_ns);
        let Some(node) = &mut self.node else {
            return Ok(());
        };
        let budget = self.budget;
        let mut bucket = ShareBucket::new(host, self.key, self.counted.0, least);
        let say = |to, message| say(to, Note { budget, message });
        let wanted = (self.wanted, self.has_less);
        perform(node, now_ns, wanted, acts, memory, &mut bucket, say);
        self.counted.0 = bucket.share;
        bucket.error.map_or(Ok(()), Err)
    }

    /// Returns the word that the kernel shall have after a batch that began at `now_ns`; `None`: that which it
    /// has.
    pub(super) fn finished(
        &mut self,
        begun_ns: u64,
        now_ns: u64,
        memory: &Memory,
    ) -> Result<Option<OwnerShare>, ChangeError> {
        let Some(node) = &self.node else {
            return Ok(None);
        };
        let (share, counted_until_ns) = self.counted;
        if now_ns >= counted_until_ns {
            return Err(ChangeError::Overtaken);
        }
        let in_force = node.in_force(begun_ns, memory);
        let until_ns = in_force.until.unwrap_or(u64::MAX);
        let word = OwnerShare::new(ShareWord::new(share, until_ns), parts_of(in_force.own));
        let is_other = (word.word, word.after) != (self.word.word, self.word.after);
        self.set(word);
        Ok(is_other.then_some(word))
    }

    /// Returns whether its word has not ended.
    pub(super) const fn holds(&self, now_ns: u64) -> bool {
        self.word.word.holds(now_ns)
    }

    /// Notes that the kernel has a word.
    pub(super) const fn set(&mut self, word: OwnerShare) {
        (self.word.word, self.word.after) = (word.word, word.after);
    }

    /// Begins anew after a while, as after a crash: what the kernel has is not what the protocol says.
    pub(super) fn fail(&mut self, memory: &mut Memory, now_ns: u64) {
        self.begins_ns = now_ns.saturating_add(memory.terms().lent_ns());
        if let Some(node) = self.node.take() {
            node.forget(now_ns, memory);
        }
    }

    /// Returns whether nobody has needed more than it has at home for so long, and the kernel has that.
    pub(super) fn is_cool(&self, now_ns: u64, for_ns: u64, memory: &Memory) -> bool {
        let home = OwnerShare::new(ShareWord::forever(parts_of(self.home)), parts_of(self.home));
        let is_at_home = |node: &Node| node.is_at_home(now_ns, memory);
        (self.word.word, self.word.after) == (home.word, home.after)
            && now_ns.saturating_sub(self.quiet_since_ns) >= for_ns
            && self.node.as_deref().is_some_and(is_at_home)
    }

    /// Forgets the owner.
    pub(super) fn forget(self, now_ns: u64, memory: &mut Memory) {
        if let Some(node) = self.node {
            node.forget(now_ns, memory);
        }
    }

    /// Returns the share of now.
    pub(super) fn share(&self, now_ns: u64) -> Parts {
        self.word.in_force(now_ns)
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.node.is_some()
    }
}

/// The end of a word that never ends.
const FOREVER: u64 = ShareWord::forever(Parts::WHOLE).until_ns();

/// Returns the least share that a node will have while it does something.
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

/// Has the protocol do something, and say what comes of it. `has_less`: whether there may be something to give back.
fn perform(
    node: &mut Node,
    now_ns: u64,
    (wanted, has_less): (Share, bool),
    acts: &[(u32, Act)],
    memory: &mut Memory,
    bucket: &mut impl Bucket,
    mut say: impl FnMut(NodeId, Message),
) {
    let (mut asks, mut speaks) = (has_less, false);
    for (_, act) in acts {
        match act {
            Act::Look => asks = true,
            Act::Changed(from, share) => {
                node.hear_changed(*from, *share);
                asks = true;
            }
            Act::Ask(header, ask) => {
                node.hear_ask(now_ns, (header, ask), memory, bucket);
                speaks = true;
            }
            Act::Loan(header, loan) => node.hear_loan(now_ns, (header, loan), memory, bucket),
        }
    }
    if asks {
        for (bank, ask) in node.ask(now_ns, wanted, memory, bucket) {
            say(bank, Message::Ask(ask));
        }
    }
    if asks || speaks {
        node.speak(now_ns, wanted, memory, bucket, say);
    }
}
