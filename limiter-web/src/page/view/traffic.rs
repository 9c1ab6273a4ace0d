//! The section on traffic: passed and dropped packets by reason over time, and incidents.

use limiter_common::reason::{Action, Reason};
use limiter_report::render::{count, number};
use maud::{Markup, html};

use super::{
    super::snapshot::Snapshot,
    parts::{Column, Kind, NONE, table, text, time},
};

const INCIDENTS: usize = 20;

pub(super) fn section(snapshot: &Snapshot) -> Markup {
    html! {
        section #traffic aria-labelledby="traffic-title" {
            h2 #traffic-title { "Passed and dropped" }
            div #plot hidden {
                p #now {}
                fieldset #window {
                    legend { "Show" }
                    label { input type="radio" name="window" value="minutes" checked; " 10 minutes" }
                    label { input type="radio" name="window" value="day"; " a day" }
                }
                div #chart role="img" aria-label="Packets per second that passed and that were dropped, by reason, over time" {}
            }
            div #reasons data-live { (reasons(snapshot)) }
            div #incidents data-live { (incidents(snapshot)) }
        }
    }
}

fn reasons(snapshot: &Snapshot) -> Markup {
    let status = &snapshot.status;
    let malformed = status.policy.malformed;
    let mut seen: Vec<_> = (Reason::ALL.iter())
        .filter_map(|reason| {
            let packets = status.reasons.get(reason.name()).copied()?;
            (packets > 0).then_some((reason, packets))
        })
        .collect();
    // Drops first.
    seen.sort_by_key(|(reason, _)| reason.action(malformed) == Action::Pass);
    let rows: Vec<_> = seen
        .into_iter()
        .map(|(reason, packets)| {
            let name = reason.name();
            let rate = snapshot.rates.get(name);
            vec![
                text(name),
                text(reason.action(malformed).name()),
                html! { span data-packets=(name) { (count(packets)) } },
                html! {
                    span data-rate=(name) { (rate.map_or_else(|| NONE.to_owned(), |rate| number(*rate))) }
                },
                text(reason.meaning()),
            ]
        })
        .collect();
    if rows.is_empty() {
        return html! { p { "No packet has arrived yet." } };
    }
    let columns = [
        Column("Reason", Kind::Text),
        Column("Verdict", Kind::Text),
        Column("Packets", Kind::Number),
        Column("Per second", Kind::Number),
        Column("Meaning", Kind::Prose),
    ];
    table("Packets by reason", &columns, &rows)
}

fn incidents(snapshot: &Snapshot) -> Markup {
    html! {
        h3 { "Incidents" }
        @if snapshot.incidents.is_empty() {
            p { "None since the daemon started." }
        } @else {
            ol.incidents {
                @for incident in snapshot.incidents.iter().take(INCIDENTS) {
                    li { (time(incident.at)) " " (incident.text) }
                }
            }
        }
    }
}
