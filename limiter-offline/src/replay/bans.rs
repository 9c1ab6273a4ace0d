//! Automatic bans in a replay: runs the daemon's decider at the capture's times.

use std::collections::{BTreeMap, HashMap};

use ipnet::IpNet;
use limiter_common::{
    ban::{Ban, BanKey, Hits},
    limit::LimitId,
};
use limiter_policy::policy::{
    AutomaticBan, BanMode, CompiledPolicy, Policy,
    bans::{forgotten_at, prefix_of},
};
use limiter_reputation::automatic::{Decider, DueBans, Offence, REFUSED_NS};

use super::engine::{Engine, EngineError};

/// The most bans to keep one by one, which bounds memory for any capture.
const MOST: usize = 1 << 16;

/// A ban that was made, or would have been made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedBan {
    /// The banned address or range.
    pub prefix: IpNet,
    /// The interned id of the banning limit.
    pub limit: LimitId,
    /// When it begins, in nanoseconds since the first packet.
    pub t_ns: u64,
    /// How long it lasts, in nanoseconds.
    pub for_ns: u64,
    /// How often the prefix has been banned, including this time.
    pub times: u16,
    /// The reason.
    pub reason: String,
    /// Whether the ban is enforced or only reported.
    pub mode: BanMode,
    /// The packets that it dropped. Drops after a new ban of the same prefix count for the new ban. Zero if
    /// only reported.
    pub hits: u64,
}

/// The bans of a replay, in the order of their times.
#[derive(Clone, Copy, Debug)]
pub struct ReplayedBans<'r> {
    /// The first bans, as many as are kept.
    pub first: &'r [ReplayedBan],
    /// The number of all bans.
    pub total: u64,
    /// By limit, how many offenders were spared because they were not proven; each counts once in ten seconds.
    pub not_proven: &'r BTreeMap<LimitId, u64>,
}

/// Bans like the daemon: reads the offenders at the same interval, and runs the same decider.
#[derive(Debug)]
pub(super) struct AutomaticBans {
    decider: Decider,
    /// The time of the first packet, in nanoseconds of the engine's clock.
    begin_ns: u64,
    interval_ns: u64,
    /// The time of the next read, in nanoseconds of the engine's clock.
    next_ns: u64,
    /// Whether a packet was dropped since the last read, or that read postponed a ban.
    is_news: bool,
    /// The last ban of each prefix.
    last: HashMap<BanKey, Ban>,
    made: Vec<ReplayedBan>,
    /// For each prefix, the index in `made` of the ban in force, and the prefix's hits before that ban.
    counted: HashMap<BanKey, (usize, u64)>,
    /// The number of bans beyond `made`.
    more: u64,
    /// By limit, how many bans were not made because the offender was not proven.
    not_proven: BTreeMap<LimitId, u64>,
    /// The exemptions of a policy, by which limits never ban a source.
    never: Policy,
}

impl AutomaticBans {
    /// Starts at the time of the first packet, in nanoseconds of the engine's clock; `None` if no
    /// limit bans.
    pub(super) fn new(policy: &Policy, begin_ns: u64) -> Option<Self> {
        let mut decider = Decider::default();
        decider.adopt(policy, begin_ns);
        let interval_ns = u64::try_from(decider.interval()?.as_nanos()).ok()?;
        Some(Self {
            decider,
            begin_ns,
            interval_ns,
            next_ns: begin_ns.saturating_add(interval_ns),
            is_news: false,
            last: HashMap::new(),
            made: Vec::new(),
            counted: HashMap::new(),
            more: 0,
            not_proven: BTreeMap::new(),
            never: Policy {
                lists: policy.lists.clone(),
                never_ban: policy.never_ban.clone(),
                nat64: policy.nat64.clone(),
                ..Policy::from(Vec::new())
            },
        })
    }

    /// Records that a limit dropped a packet.
    pub(super) const fn dropped(&mut self) {
        self.is_news = true;
    }

    /// Makes all reads of offenders that are due before a packet at `now_ns`.
    pub(super) fn advance(
        &mut self,
        engine: &mut dyn Engine,
        tables: &CompiledPolicy,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        while self.is_news && self.next_ns <= now_ns {
            self.decide(engine, tables)?;
            self.next_ns += self.interval_ns;
        }
        if let Some(late_ns) = now_ns.checked_sub(self.next_ns) {
            let last_ns = self.next_ns + late_ns / self.interval_ns * self.interval_ns;
            self.decider.nothing_new(last_ns);
            self.next_ns = last_ns + self.interval_ns;
        }
        Ok(())
    }

    /// Makes the next read of offenders, and bans.
    pub(super) fn decide(
        &mut self,
        engine: &mut dyn Engine,
        tables: &CompiledPolicy,
    ) -> Result<(), EngineError> {
        if !self.is_news {
            return Ok(());
        }
        let now_ns = self.next_ns;
        let is_proven = |prefix: &BanKey| {
            let found = engine.standing_of(tables, prefix, now_ns);
            found.map(|found| found.is_proven)
        };
        let found = self
            .decider
            .decide(now_ns, engine.offenders()?, is_proven)?;
        let DueBans {
            offences,
            delayed: _,
            unproven,
        } = found;
        self.is_news = self.decider.is_unfinished();
        for (limit, number) in unproven {
            *self.not_proven.entry(limit).or_default() += number;
        }
        for offence in offences {
            self.ban(engine, &offence)?;
        }
        Ok(())
    }

    fn ban(&mut self, engine: &mut dyn Engine, offence: &Offence) -> Result<(), EngineError> {
        let Some(terms) = self.decider.terms(offence.limit()).copied() else {
            return Ok(());
        };
        let (key, now_ns) = (offence.prefix(), self.next_ns);
        if self.never.never_banned(prefix_of(&key)).is_some() {
            let until_ns = now_ns.saturating_add(REFUSED_NS);
            self.decider.refused(offence, until_ns);
            // If the prefix was a range, the next read finds its other addresses individually.
            self.is_news |= self.decider.is_unfinished();
            return Ok(());
        }
        let before = self.last.get(&key).filter(|ban| now_ns < forgotten_at(ban));
        let ban = offence.ban(&terms, before, now_ns);
        let reported = self.record(offence, &terms, &ban);
        match terms.mode {
            BanMode::Observe => self.decider.ignore(offence, ban.until_ns),
            BanMode::Enforce => {
                let hits_before = self.count(engine, &key)?;
                engine.ban(key, &ban)?;
                self.last.insert(key, ban);
                if let Some(index) = reported {
                    self.counted.insert(key, (index, hits_before));
                }
                for part in self.decider.banned(offence, ban.until_ns) {
                    let ends = self.last.get(&part).map(|part| part.until_ns);
                    if ends.is_some_and(|until_ns| until_ns <= ban.until_ns) {
                        self.count(engine, &part)?;
                        engine.unban(&part)?;
                        self.last.remove(&part);
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores the drops of a prefix's ban in force, since the ban is replaced or lifted. Returns the prefix's
    /// hits so far.
    fn count(&mut self, engine: &dyn Engine, key: &BanKey) -> Result<u64, EngineError> {
        let Hits { packets, .. } = engine.hits(key)?;
        if let Some((index, before)) = self.counted.remove(key)
            && let Some(made) = self.made.get_mut(index)
        {
            made.hits = packets - before;
        }
        Ok(packets)
    }

    /// Stores the drops of the bans in force, at the end of the capture.
    pub(super) fn count_all(&mut self, engine: &dyn Engine) -> Result<(), EngineError> {
        let keys: Vec<_> = self.counted.keys().copied().collect();
        for key in keys {
            self.count(engine, &key)?;
        }
        Ok(())
    }

    /// Adds a ban to `made`; returns its index. `None`: there is no room.
    fn record(&mut self, offence: &Offence, terms: &AutomaticBan, ban: &Ban) -> Option<usize> {
        if self.made.len() >= MOST {
            self.more += 1;
            return None;
        }
        self.made.push(ReplayedBan {
            prefix: prefix_of(&offence.prefix()),
            limit: offence.limit(),
            t_ns: ban.since_ns - self.begin_ns,
            for_ns: ban.until_ns - ban.since_ns,
            times: ban.times,
            reason: offence.reason(terms),
            mode: terms.mode,
            hits: 0,
        });
        Some(self.made.len() - 1)
    }

    pub(super) fn made(&self) -> ReplayedBans<'_> {
        ReplayedBans {
            first: &self.made,
            total: self.made.len() as u64 + self.more,
            not_proven: &self.not_proven,
        }
    }
}
