//! The page about one address: how its packets are treated, and why.

use limiter_protocol::{Explanation, LimitExplanation};
use limiter_report::{
    explanation::{answers, headline, last_drop_lines, summary},
    render::{count, duration, hits},
    sieves as sieve, standing,
};
use maud::{Markup, html};

use super::{
    frame::frame,
    parts::{Column, Kind, NONE, table, text, time, until},
};

pub(in crate::page) fn page(explanation: &Explanation) -> Markup {
    let lines = [
        standing::explanation_lines(explanation),
        answers(explanation),
    ]
    .concat();
    frame(
        &explanation.address.to_string(),
        &html! {
            h2 { (explanation.address) }
            div #explanation data-live {
                p.fate { (headline(explanation)) }
                @for ban in &explanation.bans {
                    p {
                        "Banned by " (ban.by()) " as " (limiter_policy::text::short(ban.prefix))
                        " since " (time(ban.since)) ", until " (until(ban)) ", " (hits(ban.hits))
                        @if !ban.reason.is_empty() { ": " (ban.reason) }
                        @if let Some(list) = &ban.excluded_by { "; no effect, as " (list) " excludes it" }
                    }
                }
                @for line in summary(explanation) { p { (line) } }
                @if !explanation.limits.is_empty() { (limits(&explanation.limits)) }
                @for line in lines { p { (line) } }
                @for found in &explanation.sieves { p { (sieve::explanation_text(found)) } }
                @if let Some(last) = &explanation.last_drop {
                    @for line in last_drop_lines(last) { p { (line) } }
                }
            }
        },
    )
}

fn limits(limits: &[LimitExplanation]) -> Markup {
    let columns = [
        Column("Limit", Kind::Text),
        Column("Mode", Kind::Text),
        Column("Match", Kind::Prose),
        Column("Bucket of", Kind::Text),
        Column("Rate from", Kind::Text),
        Column("Left", Kind::Number),
        Column("Burst", Kind::Number),
        Column("Rate", Kind::Number),
        Column("Must leave", Kind::Number),
        Column("Retry in", Kind::Number),
        Column("Full in", Kind::Number),
    ];
    let rows: Vec<_> = limits.iter().map(row).collect();
    table("Limits that apply", &columns, &rows)
}

fn row(limit: &LimitExplanation) -> Vec<Markup> {
    let wait = |ns| match limit.connections {
        Some(_) => text(NONE),
        None => text(duration(ns)),
    };
    vec![
        text(&limit.limit),
        text(limit.mode.name()),
        text(limit.matching.as_deref().unwrap_or("all")),
        html! {
            (limit.id)
            @if let Some(interface) = &limit.interface { " on " (interface) }
        },
        text(&limit.source),
        text(count(limit.remaining)),
        text(limit.burst.map_or_else(|| NONE.to_owned(), count)),
        text(limit.connections.map_or_else(
            || format!("{} per {}", count(limit.count), duration(limit.period_ns)),
            |open| format!("{} open", count(open)),
        )),
        text(
            (limit.reserve.as_ref())
                .map_or_else(|| NONE.to_owned(), |reserve| count(reserve.tokens)),
        ),
        wait(limit.retry_in_ns),
        wait(limit.reset_in_ns),
    ]
}
