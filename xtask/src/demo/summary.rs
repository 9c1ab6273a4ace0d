//! Compares each client's outcome with the expectation.

use std::time::Duration;

use anyhow::{Context as _, Result};
use comfy_table::{Cell, Color, Table};

use super::{
    clients::{self, ADDRESS_LIMIT, CLIENTS, RANGE_LIMIT, Role},
    daemon::LimitState,
    live::{new_table, number},
    traffic::Outcome,
    verdict::{Allowance, Expectation, Window, judge},
};

/// The summary for the screen, and whether every client has the expected outcome.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) table: Table,
    pub(super) good: bool,
}

/// Sums up the outcomes of [`CLIENTS`], in their order.
pub(super) fn summarise(outcomes: &[Outcome]) -> Result<Summary> {
    let mut summary = Summary {
        table: new_table([
            "client", "sent", "passed", "dropped", "at most", "explain", "verdict",
        ]),
        good: true,
    };
    let clients = || CLIENTS.iter().zip(outcomes);
    for (client, outcome) in clients().filter(|(client, _)| client.role != Role::Shared) {
        let name = format!("{} {}", client.address, client.role.description());
        summary.add(&name, expectation(client.role), ADDRESS_LIMIT, outcome)?;
    }
    let shared: Vec<_> = clients()
        .filter(|(client, _)| client.role == Role::Shared)
        .collect();
    let range = clients::range().context("no client is in a range")?;
    let together = together(
        &shared
            .iter()
            .map(|(_, outcome)| *outcome)
            .collect::<Vec<_>>(),
    )?;
    summary.add(
        &format!("{range} together"),
        Expectation::ItsLimit,
        RANGE_LIMIT,
        &together,
    )?;
    for (client, outcome) in shared {
        let name = format!("  {}", client.address);
        summary.add(&name, expectation(client.role), ADDRESS_LIMIT, outcome)?;
    }
    Ok(summary)
}

impl Summary {
    fn add(
        &mut self,
        name: &str,
        expectation: Expectation,
        limit: &str,
        outcome: &Outcome,
    ) -> Result<()> {
        let limit_state = outcome
            .limit_states
            .iter()
            .find(|limit_state| limit_state.limit == limit)
            .with_context(|| format!("`limiter explain` names no {limit} for {name}"))?;
        let allowance = Allowance::new(limit_state, outcome.window);
        let verdict = judge(expectation, outcome.sent, outcome.passed, allowance);
        self.good &= verdict.is_ok();
        self.table.add_row([
            Cell::new(name),
            number(outcome.sent),
            number(outcome.passed),
            number(outcome.sent.saturating_sub(outcome.passed)),
            number(allowance.most()),
            Cell::new(explained(limit_state)),
            match verdict {
                Ok(why) => Cell::new(format!("✓ {why}")).fg(Color::Green),
                Err(why) => Cell::new(format!("✗ {why}")).fg(Color::Red),
            },
        ]);
        Ok(())
    }
}

fn expectation(role: Role) -> Expectation {
    match role {
        Role::Within | Role::Override => Expectation::Everything,
        Role::Flood => Expectation::ItsLimit,
        Role::Shared => Expectation::WithinItsLimit,
    }
}

/// Adds up the outcomes of clients that share a limit, so that all have the same budgets.
fn together(outcomes: &[&Outcome]) -> Result<Outcome> {
    let windows = outcomes.iter().map(|outcome| outcome.window);
    Ok(Outcome {
        sent: outcomes.iter().map(|outcome| outcome.sent).sum(),
        passed: outcomes.iter().map(|outcome| outcome.passed).sum(),
        window: windows.reduce(Window::union).context("no outcome")?,
        limit_states: outcomes
            .first()
            .map(|outcome| outcome.limit_states.clone())
            .unwrap_or_default(),
    })
}

fn explained(limit_state: &LimitState) -> String {
    match limit_state.retry_in_ns {
        0 => format!("{} left", limit_state.remaining),
        retry => format!(
            "{} left, retry in {:.1?}",
            limit_state.remaining,
            Duration::from_nanos(retry)
        ),
    }
}
