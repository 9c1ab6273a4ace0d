//! The state of the screen.

use std::{net::IpAddr, ops::ControlFlow, time::Duration};

use ipnet::IpNet;
use limiter_protocol::{Explanation, Grouping, KeyStatus};

use super::{
    args::TopArgs,
    change::{ConfirmedChange, PendingChange},
    filter::Filter,
    history::History,
    keys::{Action, FrontElement},
    limits::LimitRates,
    order::Order,
    rates::{Rates, Row, Sample, StandingRate},
    snapshot::{Query, Snapshot},
    subject::Subject,
};

/// The screen's data and the user's choices. It depends on neither a terminal nor a daemon.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) interval: Duration,
    pub(super) by: Grouping,
    pub(super) limit: Option<String>,
    pub(super) order: Order,
    pub(super) filter: Filter,
    pub(super) subject: Subject,
    pub(super) page: Page,
    pub(super) paused: bool,
    /// The newest sample; `None`: the daemon has not answered yet.
    pub(super) sample: Option<Sample>,
    pub(super) history: History,
    rates: Rates,
    /// The selected offender.
    selection: Selection,
    /// The selected line of any other table.
    line: usize,
}

#[derive(Debug)]
pub(super) enum Page {
    /// The table itself.
    Table,
    /// The table, with the filter being typed below it.
    Filter,
    Help,
    /// The limits of an address.
    Explanation {
        address: IpAddr,
        /// `None`: the daemon has not answered yet.
        explanation: Option<Box<Explanation>>,
    },
    /// The table, below a change that waits for confirmation.
    Confirmation(PendingChange),
    /// The table, while the daemon makes the change.
    Changing(ConfirmedChange),
    /// The table, below the outcome of a change, or why it is impossible.
    Outcome(Result<String, String>),
}

/// The selected row, which stays selected when rows are sorted.
#[derive(Debug, Default)]
struct Selection {
    /// The limit or sieve that drops it, and its id; `None`: the row at `index`.
    key: Option<(String, String)>,
    /// Its index when it was selected, used once the row is gone.
    index: usize,
}

impl Model {
    pub(super) fn new(args: &TopArgs) -> Self {
        Self {
            interval: args.interval,
            by: args.rows.by,
            limit: args.rows.limit.clone(),
            order: Order::by(args.sort),
            filter: Filter::default(),
            subject: Subject::default(),
            page: Page::Table,
            paused: false,
            sample: None,
            history: History::default(),
            rates: Rates::default(),
            selection: Selection::default(),
            line: 0,
        }
    }

    pub(super) fn query(&self) -> Query {
        Query {
            interval: self.interval,
            by: self.by,
            limit: self.limit.clone(),
            explain: match self.page {
                Page::Explanation { address, .. } => Some(address),
                _ => None,
            },
            bans_of: match &self.page {
                Page::Confirmation(asked) => asked.waits_for(),
                _ => None,
            },
        }
    }

    /// Returns the confirmed change, until it is made.
    pub(super) fn wanted(&self) -> Option<ConfirmedChange> {
        match &self.page {
            Page::Changing(wanted) => Some(wanted.clone()),
            _ => None,
        }
    }

    pub(super) fn show_outcome(&mut self, outcome: Result<String, String>) {
        self.page = Page::Outcome(outcome);
    }

    /// Returns whether the user waits for a response of the daemon.
    pub(super) fn is_waiting(&self) -> bool {
        let unexplained = matches!(
            self.page,
            Page::Explanation {
                explanation: None,
                ..
            }
        );
        let unsure = matches!(&self.page, Page::Confirmation(asked) if asked.waits_for().is_some());
        unexplained || unsure || !self.is_grouped()
    }

    /// Takes the daemon's response. While paused, it takes only missing parts; responses to outdated queries
    /// are ignored.
    pub(super) fn take(&mut self, mut snapshot: Snapshot) {
        if let (
            Page::Explanation {
                address,
                explanation,
            },
            Some(reported),
        ) = (&mut self.page, snapshot.explanation.take())
            && *address == reported.address
        {
            *explanation = Some(reported);
        }
        if let (Page::Confirmation(asked), Some((of, bans))) =
            (&mut self.page, snapshot.bans.take())
        {
            asked.take(of, bans);
        }
        if snapshot.by != self.by || (self.paused && self.is_grouped()) {
            return;
        }
        let sample = self.rates.advance(snapshot);
        if let Some(rate) = sample.dropped_packets_per_second {
            self.history.push(rate);
        }
        self.sample = Some(sample);
    }

    /// Applies an action; breaks if the user quits.
    pub(super) fn apply(&mut self, action: Action) -> ControlFlow<()> {
        match action {
            Action::Quit => return ControlFlow::Break(()),
            Action::Move(rows) => self.select(self.selected().saturating_add_signed(rows)),
            // From now on, the row on top is selected.
            Action::First => (self.selection, self.line) = (Selection::default(), 0),
            Action::Last => self.select(usize::MAX),
            Action::NextColumn => self.order = self.order.next(),
            Action::Reverse => self.order = self.order.reverse(),
            Action::Group => self.group(match self.by {
                Grouping::Address => Grouping::Range,
                Grouping::Range => Grouping::Name,
                Grouping::Name => Grouping::Address,
            }),
            Action::Pause => self.paused = !self.paused,
            Action::Explain if self.subject == Subject::Offenders => self.explain(),
            Action::Explain => self.open_limit(),
            Action::Show(subject) => self.show(subject),
            Action::NextSubject => self.show(self.subject.next()),
            Action::Ban => {
                self.request_confirmation(|row, prefix| {
                    PendingChange::ban(prefix, &row.offender.dropper())
                });
            }
            Action::Unban => {
                self.request_confirmation(|_, prefix| Ok(PendingChange::unban(prefix)));
            }
            Action::Help => self.page = Page::Help,
            Action::EditFilter => self.page = Page::Filter,
            Action::Type(character) => match &mut self.page {
                Page::Confirmation(asked) => asked.push(character),
                _ => self.filter.push(character),
            },
            Action::Erase => match &mut self.page {
                Page::Confirmation(asked) => asked.pop(),
                _ => self.filter.pop(),
            },
            Action::NextField => {
                if let Page::Confirmation(asked) = &mut self.page {
                    asked.next_field();
                }
            }
            Action::Accept => self.accept(),
            // A change being made cannot be cancelled.
            Action::Back if matches!(self.page, Page::Changing(_)) => {}
            Action::Back => {
                if matches!(self.page, Page::Table | Page::Filter) {
                    self.filter.clear();
                }
                self.page = Page::Table;
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns the element in front of the table, which decides the meaning of keys.
    pub(super) const fn front(&self) -> FrontElement {
        match self.page {
            Page::Table => FrontElement::Nothing,
            Page::Filter => FrontElement::Filter,
            Page::Help | Page::Explanation { .. } | Page::Changing(_) | Page::Outcome(_) => {
                FrontElement::Page
            }
            Page::Confirmation(_) => FrontElement::Confirmation,
        }
    }

    /// Returns the limits to show.
    pub(super) fn limits(&self) -> Vec<(&str, &LimitRates)> {
        let all = self.sample.iter().flat_map(|sample| &sample.limits);
        all.map(|(name, rates)| (name.as_str(), rates))
            .filter(|(name, _)| self.filter.is_in(name))
            .collect()
    }

    /// Returns the limits on open connections to show.
    pub(super) fn limits_on_connections(&self) -> Vec<(&str, &LimitRates)> {
        let mut limits = self.limits();
        limits.retain(|(_, rates)| rates.is_of_connections());
        limits
    }

    /// Returns the keys to show with the most open connections.
    pub(super) fn bucket_keys(&self) -> Vec<&KeyStatus> {
        let all = self.sample.iter().flat_map(|sample| &sample.keys);
        all.filter(|key| self.filter.is_in(&key.limit) || self.filter.is_in(&key.id))
            .collect()
    }

    /// Returns the traffic of each standing, for the limits to show.
    pub(super) fn standings(&self) -> Vec<(&str, &StandingRate)> {
        let standing = self
            .sample
            .iter()
            .filter_map(|sample| sample.standing.as_ref());
        let limits = standing.flat_map(|standing| &standing.limits);
        let shown = limits.filter(|(name, _)| self.filter.is_in(name));
        shown
            .flat_map(|(name, rates)| rates.iter().map(move |rate| (name.as_str(), rate)))
            .collect()
    }

    /// Returns the rows to show, in order.
    pub(super) fn rows(&self) -> Vec<&Row> {
        let all = self.sample.iter().flat_map(|sample| &sample.offenders);
        let mut rows: Vec<_> = all.filter(|row| self.filter.shows(row)).collect();
        rows.sort_by(|one, other| self.order.compare(one, other));
        rows
    }

    /// Returns the selected row's index among the rows to show; 0 if there are none.
    pub(super) fn selected(&self) -> usize {
        if self.subject != Subject::Offenders {
            return self.line.min(self.names().len().saturating_sub(1));
        }
        let rows = self.rows();
        let kept = self.selection.key.as_ref().and_then(|(limit, id)| {
            let is_it = |row: &&Row| row.offender.dropper() == *limit && row.offender.id == *id;
            rows.iter().position(is_it)
        });
        kept.unwrap_or_else(|| self.selection.index.min(rows.len().saturating_sub(1)))
    }

    /// Returns the limit of each line of a table that is not about offenders.
    fn names(&self) -> Vec<&str> {
        let limits = match self.subject {
            Subject::Offenders => Vec::new(),
            Subject::Limits => self.limits(),
            Subject::Connections => self.limits_on_connections(),
            Subject::Standing => {
                let lines = self.standings().into_iter();
                return lines.map(|(name, _)| name).collect();
            }
        };
        limits.into_iter().map(|(name, _)| name).collect()
    }

    fn show(&mut self, subject: Subject) {
        self.subject = subject;
        self.line = 0;
    }

    fn open_limit(&mut self) {
        let names = self.names();
        let Some(name) = names.get(self.selected()) else {
            return;
        };
        self.filter = Filter::text(name);
        self.show(Subject::Offenders);
        self.selection = Selection::default();
    }

    /// Asks for confirmation of a change to the selected offender.
    fn request_confirmation(
        &mut self,
        change: impl FnOnce(&Row, IpNet) -> Result<PendingChange, String>,
    ) {
        if self.subject != Subject::Offenders {
            self.show_outcome(Err(
                "only offenders are banned and unbanned: press 1".to_owned()
            ));
            return;
        }
        let rows = self.rows();
        let Some(row) = rows.get(self.selected()) else {
            return;
        };
        let asked = match row.addresses {
            Some(prefix) => change(row, prefix),
            None => Err(format!("{} stands for no address", row.offender.id)),
        };
        self.page = match asked {
            Ok(asked) => Page::Confirmation(asked),
            Err(why) => Page::Outcome(Err(why)),
        };
    }

    /// Keeps the filter, or confirms a change that can be made.
    fn accept(&mut self) {
        if let Page::Confirmation(asked) = &self.page {
            if let Ok(wanted) = asked.wanted() {
                self.page = Page::Changing(wanted);
            }
        } else {
            self.page = Page::Table;
        }
    }

    fn select(&mut self, index: usize) {
        if self.subject != Subject::Offenders {
            self.line = index.min(self.names().len().saturating_sub(1));
            return;
        }
        let rows = self.rows();
        let index = index.min(rows.len().saturating_sub(1));
        let key = rows
            .get(index)
            .map(|row| (row.offender.dropper(), row.offender.id.clone()));
        self.selection = Selection { key, index };
    }

    fn group(&mut self, by: Grouping) {
        self.by = by;
        self.selection = Selection::default();
    }

    /// Shows the limits of the selected address, or the addresses of the selected range.
    fn explain(&mut self) {
        let index = self.selected();
        let Some(addresses) = self.rows().get(index).and_then(|row| row.addresses) else {
            return;
        };
        if addresses.prefix_len() == addresses.max_prefix_len() {
            self.page = Page::Explanation {
                address: addresses.addr(),
                explanation: None,
            };
        } else {
            self.filter = Filter::prefix(addresses);
            self.group(Grouping::Address);
        }
    }

    /// Returns whether the sample has the chosen grouping.
    fn is_grouped(&self) -> bool {
        self.sample
            .as_ref()
            .is_some_and(|sample| sample.by == self.by)
    }
}

#[cfg(test)]
mod tests;
