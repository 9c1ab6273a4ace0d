//! Decides when an incident begins, which subject it has, and when it ends.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    mem,
    net::IpAddr,
    time::Duration,
};

use limiter_common::{
    limit::LimitId,
    offender::{Dropper, Offender, OffenderKey},
};
use limiter_datapath::kernel::OffenderRecords;

use super::{
    event::{Event, Source, Subject},
    lines::Lines,
};

/// Drops between two polls that begin an incident; fewer are not worth a line.
pub(super) const LEAST_DROPS: u64 = 10;

/// If this many addresses of a range begin at once, the incident is the range's.
pub(super) const ADDRESSES_OF_A_RANGE: usize = 8;

/// The most incidents at once. Further sources are only counted.
pub(super) const MOST_OPEN: usize = 1024;

/// The open incidents and the state of the last poll. Times are in nanoseconds of the decision's clock.
///
/// Memory is bounded: there are at most [`MOST_OPEN`] incidents, and one number of drops for each remembered
/// offender.
#[derive(Debug)]
pub(super) struct Incidents {
    quiet_ns: u64,
    open: HashMap<Subject, Incident>,
    lines: Lines,
    /// Each limit's drops.
    dropped: HashMap<LimitId, u64>,
    /// Each offender's drops.
    seen: HashMap<OffenderKey, DropState>,
    /// When the offenders were last read.
    read_ns: u64,
    /// When the last poll was.
    polled_ns: u64,
    /// The numbers of unrecorded drops and of forgotten offenders at that time.
    missed: (u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct DropState {
    drops: u64,
    /// Whether enough of the drops were new for an incident.
    is_busy: bool,
}

#[derive(Clone, Copy, Debug)]
struct Incident {
    first_drop_ns: u64,
    last_drop_ns: u64,
    drops: u64,
    /// Whether more packets may have been dropped.
    is_lower_bound: bool,
    /// Whether its beginning was logged.
    is_reported: bool,
}

struct NewIncident {
    subject: Subject,
    /// The number of its addresses; 0: unknown, or the incident is a name's.
    addresses: u64,
    /// The number of its addresses not already counted as left out for lack of room.
    uncounted: u64,
    incident: Incident,
}

impl Incidents {
    /// Tracks incidents from now on. An incident ends after `quiet` without a drop.
    pub(super) fn new(quiet: Duration, now_ns: u64) -> Self {
        Self {
            quiet_ns: u64::try_from(quiet.as_nanos()).unwrap_or(u64::MAX),
            open: HashMap::new(),
            lines: Lines::default(),
            dropped: HashMap::new(),
            seen: HashMap::new(),
            read_ns: now_ns,
            polled_ns: now_ns,
            missed: (0, 0),
        }
    }

    /// Whether limits have dropped packets since the last poll, so that offenders have changed.
    pub(super) fn is_news(&self, dropped: &[(LimitId, u64)]) -> bool {
        let mut dropped = dropped.iter();
        dropped.any(|(limit, drops)| self.dropped.get(limit) != Some(drops))
    }

    /// Polls each limit's number of drops, and the offenders, if they are recorded and have changed.
    /// Returns the events to log, in order.
    pub(super) fn observe(
        &mut self,
        now_ns: u64,
        dropped: &[(LimitId, u64)],
        recorded: Option<&OffenderRecords>,
    ) -> Vec<Event> {
        let mut beginnings = match recorded {
            Some(recorded) => self.add_offenders(now_ns, recorded),
            None => Vec::new(),
        };
        self.add_limits(now_ns, dropped, &mut beginnings);
        self.polled_ns = now_ns;
        let mut reported = Vec::new();
        self.end(now_ns, &mut reported);
        self.begin(now_ns, beginnings, &mut reported);
        reported
    }

    /// Adds offenders' drops since the last poll to the incidents of the offenders and of the names they ask for.
    /// Returns beginning incidents.
    fn add_offenders(&mut self, now_ns: u64, recorded: &OffenderRecords) -> Vec<NewIncident> {
        let read_ns = mem::replace(&mut self.read_ns, now_ns);
        // An offender that the last poll did not read was not busy.
        let was_read = read_ns == self.polled_ns;
        let missed = (recorded.counts.skipped, recorded.forgotten());
        let is_lower_bound = mem::replace(&mut self.missed, missed) != missed;
        let before = mem::take(&mut self.seen);
        let mut ranges = HashMap::<Subject, Vec<NewIncident>>::new();
        let all = || recorded.offenders.iter().chain(&recorded.names);
        self.seen.reserve(all().count());
        // A sieve's drops count for its limit's incident, as its single sources are no news.
        for (key, offender) in all().filter(|(key, _)| key.dropper() == Dropper::Budget) {
            let before = before.get(key);
            let drops = new_drops(before, offender, read_ns);
            let is_busy = drops >= LEAST_DROPS;
            let was_busy = was_read && before.is_some_and(|seen| seen.is_busy);
            let seen = DropState {
                drops: offender.drops,
                is_busy,
            };
            self.seen.insert(*key, seen);
            if drops == 0 {
                continue;
            }
            let limit = LimitId(key.limit);
            let subject = |source| Subject { limit, source };
            // A name belongs to no range.
            let (alone, range) = match key.name() {
                Some((key_part, number)) => [subject(Source::Name(key_part, number)); 2].into(),
                None => (
                    subject(Source::Address(key.address())),
                    subject(Source::range_of(key.address())),
                ),
            };
            if let Some(incident) = self.open_incident(&alone, &range) {
                incident.add(drops, offender.last_drop_ns, is_lower_bound);
            } else if is_busy {
                let mut incident = self.incident(now_ns, drops, offender);
                incident.is_lower_bound = is_lower_bound;
                ranges.entry(range).or_default().push(NewIncident {
                    subject: alone,
                    addresses: u64::from(key.name().is_none()),
                    uncounted: u64::from(!was_busy),
                    incident,
                });
            }
        }
        let ranges = ranges.into_iter();
        ranges
            .flat_map(|(range, beginnings)| together(range, beginnings))
            .collect()
    }

    /// Returns the incident of an offender with that number of new drops.
    fn incident(&self, now_ns: u64, drops: u64, offender: &Offender) -> Incident {
        // All drops of a recent offender belong to this incident.
        let is_recent = offender.first_drop_ns.saturating_add(self.quiet_ns) > now_ns;
        let (drops, first_drop_ns) = if is_recent {
            (offender.drops, offender.first_drop_ns)
        } else {
            (drops, self.polled_ns)
        };
        Incident::new(drops, first_drop_ns, offender.last_drop_ns)
    }

    fn open_incident(&mut self, alone: &Subject, range: &Subject) -> Option<&mut Incident> {
        let subject = if self.open.contains_key(alone) {
            alone
        } else {
            range
        };
        self.open.get_mut(subject)
    }

    /// Adds drops to the limits' own incidents, for limits without an incident of a source: the sources are unknown,
    /// or each is dropped too seldom.
    fn add_limits(
        &mut self,
        now_ns: u64,
        dropped: &[(LimitId, u64)],
        beginnings: &mut Vec<NewIncident>,
    ) {
        let subjects = self.open.keys();
        let of_sources: HashSet<_> = subjects
            .chain(beginnings.iter().map(|beginning| &beginning.subject))
            .filter(|subject| subject.source != Source::Any)
            .map(|subject| subject.limit)
            .collect();
        for (limit, total) in dropped {
            // The drops of a limit new to the tracker may be old.
            let before = self.dropped.insert(*limit, *total).unwrap_or(*total);
            let drops = total.saturating_sub(before);
            if drops == 0 || of_sources.contains(limit) {
                continue;
            }
            let subject = Subject {
                limit: *limit,
                source: Source::Any,
            };
            if let Some(incident) = self.open.get_mut(&subject) {
                incident.add(drops, now_ns, false);
            } else if drops >= LEAST_DROPS {
                beginnings.push(NewIncident {
                    subject,
                    addresses: 0,
                    uncounted: 0,
                    incident: Incident::new(drops, now_ns, now_ns),
                });
            }
        }
    }

    /// Ends incidents without a drop for some time, in the order of their last drops. If the beginning was logged,
    /// the incident stays until there is room to log its end.
    fn end(&mut self, now_ns: u64, reported: &mut Vec<Event>) {
        let quiet_ns = self.quiet_ns;
        let open = self.open.iter();
        let mut ended: Vec<_> = open
            .filter(|(_, incident)| now_ns.saturating_sub(incident.last_drop_ns) >= quiet_ns)
            .map(|(subject, incident)| (*subject, *incident))
            .collect();
        ended.sort_unstable_by_key(|(subject, incident)| (incident.last_drop_ns, order(subject)));
        for (subject, incident) in ended {
            let event = Event::Ended {
                subject,
                drops: incident.drops,
                is_lower_bound: incident.is_lower_bound,
                duration_ns: incident.last_drop_ns.saturating_sub(incident.first_drop_ns),
            };
            if !incident.is_reported || self.lines.try_log(now_ns, event, reported) {
                self.open.remove(&subject);
            }
        }
    }

    /// Begins incidents, most drops first, while there is room.
    fn begin(&mut self, now_ns: u64, mut beginnings: Vec<NewIncident>, reported: &mut Vec<Event>) {
        beginnings.sort_unstable_by_key(|beginning| {
            (Reverse(beginning.incident.drops), order(&beginning.subject))
        });
        for NewIncident {
            subject,
            addresses,
            uncounted,
            mut incident,
        } in beginnings
        {
            let event = Event::Began {
                subject,
                addresses,
                drops: incident.drops,
            };
            let has_room = self.open.len() < MOST_OPEN;
            incident.is_reported = has_room && self.lines.try_log(now_ns, event, reported);
            if !incident.is_reported {
                self.lines.leave_out(uncounted);
            }
            if has_room {
                self.open.insert(subject, incident);
            }
        }
    }
}

impl Incident {
    const fn new(drops: u64, first_drop_ns: u64, last_drop_ns: u64) -> Self {
        Self {
            first_drop_ns,
            last_drop_ns,
            drops,
            is_lower_bound: false,
            is_reported: false,
        }
    }

    fn add(&mut self, drops: u64, last_drop_ns: u64, is_lower_bound: bool) {
        self.drops += drops;
        self.last_drop_ns = self.last_drop_ns.max(last_drop_ns);
        self.is_lower_bound |= is_lower_bound;
    }
}

/// Returns an offender's drops since the offenders were last read.
fn new_drops(before: Option<&DropState>, offender: &Offender, read_ns: u64) -> u64 {
    match before {
        // A forgotten offender starts again at zero.
        Some(seen) => {
            let drops = offender.drops.checked_sub(seen.drops);
            drops.unwrap_or(offender.drops)
        }
        None if offender.first_drop_ns >= read_ns => offender.drops,
        // The drops are older than the tracker.
        None => 0,
    }
}

/// Merges the incidents of a range that begin at once into one, if they are many.
fn together(range: Subject, beginnings: Vec<NewIncident>) -> Vec<NewIncident> {
    if beginnings.len() < ADDRESSES_OF_A_RANGE {
        return beginnings;
    }
    let together = beginnings.into_iter().reduce(|mut all, one| {
        let (sum, part) = (&mut all.incident, one.incident);
        sum.add(part.drops, part.last_drop_ns, part.is_lower_bound);
        sum.first_drop_ns = sum.first_drop_ns.min(part.first_drop_ns);
        all.addresses += one.addresses;
        all.uncounted += one.uncounted;
        all
    });
    together
        .into_iter()
        .map(|all| NewIncident {
            subject: range,
            ..all
        })
        .collect()
}

/// A sort key that makes the order reproducible.
fn order(subject: &Subject) -> (LimitId, Option<IpAddr>, Option<u64>) {
    let (address, number) = match subject.source {
        Source::Address(address) | Source::Range(address) => (Some(address.into()), None),
        Source::Name(_, number) => (None, Some(number)),
        Source::Any => (None, None),
    };
    (subject.limit, address, number)
}

#[cfg(test)]
mod tests;
