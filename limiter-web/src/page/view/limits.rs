//! The section on limits: rates, tokens left, and packets passed and dropped.

use limiter_protocol::LimitExplanation;
use limiter_report::{
    capacity,
    render::{count, number, percent},
};
use maud::{Markup, html};

use super::{
    super::{
        rates::LimitRate,
        snapshot::{LimitRow, Snapshot},
    },
    connections,
    parts::{Column, Kind, NONE, encoded, table, text},
};

pub(super) fn section(snapshot: &Snapshot) -> Markup {
    let columns = [
        Column("Limit", Kind::Text),
        Column("Mode", Kind::Text),
        Column("Counts", Kind::Prose),
        Column("Rate", Kind::Text),
        Column("Left", Kind::Number),
        Column("Passed per second", Kind::Number),
        Column("Dropped per second", Kind::Number),
        Column("Would drop per second", Kind::Number),
        Column("Passed", Kind::Number),
        Column("Dropped", Kind::Number),
        Column("Would have dropped", Kind::Number),
        Column("Banned", Kind::Number),
        Column("Would have banned", Kind::Number),
    ];
    let rows: Vec<_> = snapshot.limits.iter().map(row).collect();
    let automatic = snapshot.limits.iter().filter_map(|limit| {
        let rate = limit.status.automatic.as_ref()?;
        Some(capacity::line(&limit.name, rate))
    });
    html! {
        section #limits data-live aria-labelledby="limits-title" {
            h2 #limits-title { "Limits" }
            @if rows.is_empty() {
                p { "There are no limits." }
            } @else {
                (table("Limits, in packets", &columns, &rows))
                p {
                    "The remainder is that of all sources together. Where each source has its own, "
                    "explain an address."
                }
            }
            @for line in automatic { p { (line) } }
            @if let Some(status) = &snapshot.status.connections { (connections::part(status, snapshot)) }
        }
    }
}

fn row(limit: &LimitRow) -> Vec<Markup> {
    let status = &limit.status;
    let rate = |of: fn(&LimitRate) -> f64| {
        let rate = limit.per_second.as_ref().map(of);
        text(rate.map_or_else(|| NONE.to_owned(), number))
    };
    let [banned, would_ban] = match limit.bans {
        Some(bans) => bans.map(|number| text(count(number))),
        None => [text(NONE), text(NONE)],
    };
    vec![
        html! { a href=(format!("/offenders?limit={}", encoded(&limit.name))) { (limit.name) } },
        html! {
            @if limit.only_observes() { strong { (status.mode.name()) } }
            @else { (status.mode.name()) }
        },
        text(&limit.counts),
        text(limit.rate.as_deref().unwrap_or("only overrides")),
        left(&limit.left),
        rate(|rate| rate.passed),
        rate(|rate| rate.dropped),
        rate(|rate| rate.would_drop),
        text(count(status.passed_packets)),
        text(count(status.dropped_packets)),
        text(count(status.would_drop_packets)),
        banned,
        would_ban,
    ]
}

/// Returns the tokens left in the bucket with the smallest remaining fraction.
fn left(buckets: &[LimitExplanation]) -> Markup {
    let fraction = |bucket: &LimitExplanation| {
        let most = bucket.burst.unwrap_or(bucket.count).max(1);
        #[expect(clippy::cast_precision_loss, reason = "nobody reads so many digits")]
        let fraction = bucket.remaining as f64 / most as f64;
        fraction
    };
    let least = buckets
        .iter()
        .min_by(|one, other| fraction(one).total_cmp(&fraction(other)));
    let Some(least) = least else {
        return text(NONE);
    };
    let most = least.burst.unwrap_or(least.count);
    let percent = percent(fraction(least) * 100.0);
    html! {
        meter min="0" max=(most) value=(least.remaining) aria-label="left" {}
        " " (count(least.remaining)) " of " (count(most)) " (" (percent) ")"
        @if let Some(interface) = &least.interface { " on " (interface) }
    }
}
