//! The state of the screen.

use std::{net::IpAddr, ops::ControlFlow, time::Duration};

use super::{
    args::TopArgs,
    filter::Filter,
    history::History,
    keys::{Action, Front},
    order::Order,
    rates::{Rates, Row, Sample},
    snapshot::{Query, Snapshot},
};
use crate::protocol::{Explanation, Grouping};

/// What the screen shows and what the user has chosen. It depends on neither a terminal nor a
/// daemon.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) interval: Duration,
    pub(super) by: Grouping,
    pub(super) limit: Option<String>,
    pub(super) order: Order,
    pub(super) filter: Filter,
    pub(super) page: Page,
    pub(super) paused: bool,
    /// The newest sample; `None`: the daemon has not answered yet.
    pub(super) sample: Option<Sample>,
    pub(super) history: History,
    rates: Rates,
    selection: Selection,
}

/// The page in front of the table.
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
}

/// The selected row, which stays selected wherever it is sorted to.
#[derive(Debug, Default)]
struct Selection {
    /// What drops it, and its id; `None`: the row at `index`.
    key: Option<(String, String)>,
    /// Its index when it was selected, used once the row is gone.
    index: usize,
}

impl Model {
    /// Returns the initial state, as the command line asks for.
    pub(super) fn new(args: &TopArgs) -> Self {
        Self {
            interval: args.interval,
            by: args.rows.by,
            limit: args.rows.limit.clone(),
            order: Order::by(args.sort),
            filter: Filter::default(),
            page: Page::Table,
            paused: false,
            sample: None,
            history: History::default(),
            rates: Rates::default(),
            selection: Selection::default(),
        }
    }

    /// Returns what to ask the daemon.
    pub(super) fn query(&self) -> Query {
        Query {
            interval: self.interval,
            by: self.by,
            limit: self.limit.clone(),
            explain: match self.page {
                Page::Explanation { address, .. } => Some(address),
                _ => None,
            },
        }
    }

    /// Whether the user looks at something that the daemon has not answered yet.
    pub(super) fn waits(&self) -> bool {
        let unexplained = matches!(
            self.page,
            Page::Explanation {
                explanation: None,
                ..
            }
        );
        unexplained || !self.is_grouped()
    }

    /// Takes the daemon's answer: only what is missing while paused, and nothing that answers an
    /// outdated question.
    pub(super) fn take(&mut self, mut snapshot: Snapshot) {
        if let (
            Page::Explanation {
                address,
                explanation,
            },
            Some(told),
        ) = (&mut self.page, snapshot.explanation.take())
            && *address == told.address
        {
            *explanation = Some(Box::new(told));
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
            // Selects whichever row is first from now on.
            Action::First => self.selection = Selection::default(),
            Action::Last => self.select(usize::MAX),
            Action::NextColumn => self.order = self.order.next(),
            Action::Reverse => self.order = self.order.reverse(),
            Action::Group => self.group(match self.by {
                Grouping::Address => Grouping::Range,
                Grouping::Range => Grouping::Address,
            }),
            Action::Pause => self.paused = !self.paused,
            Action::Explain => self.explain(),
            Action::Help => self.page = Page::Help,
            Action::EditFilter => self.page = Page::Filter,
            Action::Type(character) => self.filter.push(character),
            Action::Erase => self.filter.pop(),
            Action::Accept => self.page = Page::Table,
            Action::Back => {
                if matches!(self.page, Page::Table | Page::Filter) {
                    self.filter.clear();
                }
                self.page = Page::Table;
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns what is in front of the table, which decides what keys do.
    pub(super) const fn front(&self) -> Front {
        match self.page {
            Page::Table => Front::Nothing,
            Page::Filter => Front::Filter,
            Page::Help | Page::Explanation { .. } => Front::Page,
        }
    }

    /// Returns the rows that are shown, in order.
    pub(super) fn rows(&self) -> Vec<&Row> {
        let all = self.sample.iter().flat_map(|sample| &sample.offenders);
        let mut rows: Vec<_> = all.filter(|row| self.filter.shows(row)).collect();
        rows.sort_by(|one, other| self.order.compare(one, other));
        rows
    }

    /// Returns the selected row's index among those shown; 0 if there are none.
    pub(super) fn selected(&self) -> usize {
        let rows = self.rows();
        let kept = self.selection.key.as_ref().and_then(|(limit, id)| {
            let is_it = |row: &&Row| row.offender.dropper() == *limit && row.offender.id == *id;
            rows.iter().position(is_it)
        });
        kept.unwrap_or_else(|| self.selection.index.min(rows.len().saturating_sub(1)))
    }

    fn select(&mut self, index: usize) {
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

    /// Whether the sample is grouped as the user wants it.
    fn is_grouped(&self) -> bool {
        self.sample
            .as_ref()
            .is_some_and(|sample| sample.by == self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{explanation, model, offender, snapshot},
        *,
    };

    fn apply(model: &mut Model, actions: &[Action]) {
        for action in actions {
            assert!(model.apply(*action).is_continue(), "{action:?}");
        }
    }

    fn ids(model: &Model) -> Vec<&str> {
        let rows = model.rows().into_iter();
        rows.map(|row| row.offender.id.as_str()).collect()
    }

    /// Offenders 192.0.2.0, .1, … with the given numbers of drops.
    fn drops(second: u64, drops: &[u64]) -> Snapshot {
        let offenders = drops.iter().enumerate();
        let offenders = offenders.map(|(n, drops)| offender("L", &format!("192.0.2.{n}"), *drops));
        let offenders: Vec<_> = offenders.collect();
        snapshot(second, [0, drops.iter().sum()], offenders)
    }

    #[test]
    fn the_fastest_come_first_and_the_selected_row_stays_selected() {
        let mut model = model(&[]);
        assert!(model.waits());
        model.take(drops(0, &[30, 20, 10]));
        assert!(!model.waits());
        assert_eq!(ids(&model), ["192.0.2.0", "192.0.2.1", "192.0.2.2"]);
        assert_eq!(model.selected(), 0);

        apply(&mut model, &[Action::Move(1)]);
        model.take(drops(1, &[30, 25, 20]));
        assert_eq!(ids(&model), ["192.0.2.2", "192.0.2.1", "192.0.2.0"]);
        assert_eq!(model.selected(), 1);
        model.take(drops(2, &[30, 30, 20]));
        assert_eq!(ids(&model), ["192.0.2.1", "192.0.2.0", "192.0.2.2"]);
        assert_eq!(model.selected(), 0);
        assert_eq!(model.history.newest(9), [5, 15]);

        // The selection stops at the last and the first row.
        apply(&mut model, &[Action::Move(10)]);
        assert_eq!(model.selected(), 2);
        apply(&mut model, &[Action::Move(-10)]);
        assert_eq!(model.selected(), 0);
        apply(&mut model, &[Action::Last]);
        assert_eq!(model.selected(), 2);
        // The selected row is forgotten.
        model.take(drops(3, &[30, 30]));
        assert_eq!(model.selected(), 1);
        model.take(drops(4, &[]));
        assert_eq!(model.selected(), 0);
        apply(&mut model, &[Action::Move(1), Action::Explain]);
        assert_eq!(model.front(), Front::Nothing);
    }

    #[test]
    fn sorting_and_filtering() {
        let mut model = model(&["--sort", "drops"]);
        model.take(drops(0, &[30, 20, 40]));
        assert_eq!(ids(&model), ["192.0.2.2", "192.0.2.0", "192.0.2.1"]);
        apply(&mut model, &[Action::Reverse]);
        assert_eq!(ids(&model), ["192.0.2.1", "192.0.2.0", "192.0.2.2"]);
        let typed = |text: &str| text.chars().map(Action::Type).collect::<Vec<_>>();
        apply(&mut model, &[Action::EditFilter]);
        assert_eq!(model.front(), Front::Filter);
        apply(&mut model, &typed("2.1x"));
        assert!(ids(&model).is_empty());
        apply(&mut model, &[Action::Erase, Action::Accept]);
        assert_eq!(model.front(), Front::Nothing);
        assert_eq!(ids(&model), ["192.0.2.1"]);
        apply(&mut model, &[Action::Back]);
        assert_eq!(ids(&model).len(), 3);
    }

    #[test]
    fn paused_only_what_is_missing_is_taken() {
        let mut model = model(&[]);
        model.take(drops(0, &[30]));
        apply(&mut model, &[Action::Pause]);
        model.take(drops(1, &[30, 50]));
        assert_eq!(ids(&model).len(), 1);

        apply(&mut model, &[Action::Group]);
        assert!(model.waits());
        // The answer to the question before.
        model.take(drops(2, &[30, 50]));
        assert!(model.waits());
        assert_eq!(model.query().by, Grouping::Range);
        let mut ranges = snapshot(3, [0, 0], [offender("L", "192.0.2.0/24", 80)]);
        ranges.by = Grouping::Range;
        model.take(ranges);
        assert!(!model.waits());
        assert_eq!(ids(&model), ["192.0.2.0/24"]);

        // A range is explained by its addresses.
        apply(&mut model, &[Action::Explain]);
        assert_eq!(model.filter.to_string(), "192.0.2.0/24");
        model.take(drops(4, &[30, 50]));
        assert_eq!(ids(&model), ["192.0.2.1", "192.0.2.0"]);
    }

    #[test]
    fn an_address_is_explained() {
        let mut model = model(&[]);
        model.take(drops(0, &[30, 20]));
        apply(&mut model, &[Action::Last, Action::Explain]);
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(model.query().explain, Some(address));
        assert!(model.waits());
        let answer = |second, address: &str| Snapshot {
            explanation: Some(explanation(address)),
            ..drops(second, &[30, 20])
        };
        // The answer for another address, asked about before.
        model.take(answer(1, "192.0.2.0"));
        assert!(model.waits());
        model.take(answer(2, "192.0.2.1"));
        assert!(!model.waits());
        apply(&mut model, &[Action::Back]);
        assert_eq!(model.query().explain, None);
        assert_eq!(model.front(), Front::Nothing);
    }

    #[test]
    fn quitting_is_the_end() {
        assert!(model(&[]).apply(Action::Quit).is_break());
    }
}
