//! The display while the traffic runs.

use std::{
    collections::VecDeque,
    io::{IsTerminal as _, stdout},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::clients::CLIENTS;

/// How often to update.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// The number of ticks to average the rate over: a second.
const RATE_TICKS: usize = 10;

/// The numbers of packets sent and passed by each client, in the order of [`CLIENTS`].
pub(super) type ClientPackets = [(u64, u64); CLIENTS.len()];

/// A table that is redrawn in place on a terminal; elsewhere a line a second.
#[derive(Debug)]
pub(super) struct LiveTable {
    start: Instant,
    history: VecDeque<(Instant, ClientPackets)>,
    screen: Screen,
}

#[derive(Debug)]
enum Screen {
    Terminal(ProgressBar),
    Lines { next: Duration },
}

impl LiveTable {
    pub(super) fn new() -> Result<Self> {
        let screen = if stdout().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            bar.set_style(ProgressStyle::with_template("{msg}").context("a bad template")?);
            Screen::Terminal(bar)
        } else {
            Screen::Lines {
                next: Duration::from_secs(1),
            }
        };
        Ok(Self {
            start: Instant::now(),
            history: VecDeque::new(),
            screen,
        })
    }

    /// Shows the counts; must be called each [`TICK`].
    pub(super) fn show(&mut self, counts: &ClientPackets) {
        let now = Instant::now();
        self.history.push_back((now, *counts));
        if self.history.len() > RATE_TICKS + 1 {
            self.history.pop_front();
        }
        let rates = self.rates();
        match &mut self.screen {
            Screen::Terminal(bar) => bar.set_message(table(counts, &rates).to_string()),
            Screen::Lines { next } if self.start.elapsed() >= *next => {
                println!("{:>3} s  {}", next.as_secs(), line(counts));
                *next += Duration::from_secs(1);
            }
            Screen::Lines { .. } => {}
        }
    }

    /// Removes the table: the summary repeats it.
    pub(super) fn end(self) {
        if let Screen::Terminal(bar) = self.screen {
            bar.finish_and_clear();
        }
    }

    /// Returns the packets passed per second, over the history.
    fn rates(&self) -> [u128; CLIENTS.len()] {
        let (Some((from, before)), Some((to, after))) = (self.history.front(), self.history.back())
        else {
            return [0; CLIENTS.len()];
        };
        let elapsed = to.duration_since(*from).as_millis().max(1);
        std::array::from_fn(|client| {
            u128::from(after[client].1 - before[client].1) * 1000 / elapsed
        })
    }
}

fn table(counts: &ClientPackets, rates: &[u128; CLIENTS.len()]) -> Table {
    let mut table = new_table(["client", "sends", "sent", "passed", "dropped", "passed/s"]);
    for ((client, (sent, passed)), rate) in CLIENTS.iter().zip(counts).zip(rates) {
        let dropped = sent.saturating_sub(*passed);
        table.add_row([
            Cell::new(format!("{} {}", client.address, client.role.description())),
            number(format!("{}/s", client.per_second)),
            number(sent),
            number(passed).fg(Color::Green),
            match dropped {
                0 => number(0),
                _ => number(dropped).fg(Color::Red),
            },
            number(rate),
        ]);
    }
    table
}

fn line(counts: &ClientPackets) -> String {
    let clients = CLIENTS.iter().zip(counts).map(|(client, (sent, passed))| {
        let dropped = sent.saturating_sub(*passed);
        format!(
            "{} sent {sent} passed {passed} dropped {dropped}",
            client.address
        )
    });
    clients.collect::<Vec<_>>().join("; ")
}

/// Returns an empty table in the demonstration's style; on a terminal it is coloured and fits the
/// width.
pub(super) fn new_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    table
}

pub(super) fn number(number: impl ToString) -> Cell {
    Cell::new(number).set_alignment(CellAlignment::Right)
}
