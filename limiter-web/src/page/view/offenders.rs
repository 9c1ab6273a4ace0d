//! The tables of dropped sources: limit or sieve, and end.

use limiter_protocol::{Grouping, OffenderList, OffenderStatus, web::SourceBlock};
use limiter_report::render::{ago, at_least, count, duration};
use maud::{Markup, html};

use super::{
    super::{params::OffendersParams, snapshot::Offenders},
    frame::frame,
    parts::{Column, Kind, encoded, source, table, text, until},
};

pub(super) fn section(offenders: &Result<Offenders, String>) -> Markup {
    html! {
        section #offenders data-live aria-labelledby="offenders-title" {
            h2 #offenders-title { "Dropped now" }
            @match offenders {
                Err(why) => { p { (why) } }
                Ok(offenders) => {
                    @if offenders.list.offenders.is_empty() {
                        p { "No limit or sieve has dropped anybody in the last minute." }
                    } @else {
                        (rows(offenders, Grouping::Address, "Dropped in the last minute, most drops first"))
                    }
                    p { (list_summary(&offenders.list)) " " a href="/offenders" { "All of them" } }
                }
            }
        }
    }
}

/// Returns a page of offenders; `next`: the first row of the next one.
pub(in crate::page) fn page(
    offenders: &Offenders,
    asked: &OffendersParams,
    next: Option<usize>,
) -> Markup {
    let by = |by| match by {
        Grouping::Address => "address",
        Grouping::Range => "range",
        Grouping::Name => "name",
    };
    let grouping = asked.by.unwrap_or(Grouping::Address);
    let link = |from: usize, grouping| {
        let limit = encoded(&asked.limit);
        format!("/offenders?from={from}&by={}&limit={limit}", by(grouping))
    };
    frame(
        "Offenders",
        &html! {
            h2 { "Offenders" }
            @if !asked.limit.is_empty() {
                p { "Only those of " (asked.limit) ". " a href="/offenders" { "All" } }
            }
            p {
                "By "
                @for other in [Grouping::Address, Grouping::Range, Grouping::Name] {
                    @if other == grouping { strong { (by(other)) } " " }
                    @else { a href=(link(0, other)) { (by(other)) } " " }
                }
            }
            div #rows data-live {
                @if offenders.list.offenders.is_empty() {
                    p { "No drops are remembered here." }
                } @else {
                    (rows(offenders, grouping, "Dropped most"))
                }
                p {
                    (list_summary(&offenders.list)) " The thousand that were dropped most are shown."
                }
            }
            nav aria-label="Rows" {
                @if asked.from > 0 { a href=(link(0, grouping)) rel="first" { "First" } }
                @if let Some(next) = next { a href=(link(next, grouping)) rel="next" { "Next" } }
            }
        },
    )
}

fn list_summary(list: &OffenderList) -> String {
    format!(
        "{} of up to {} remembered, {} forgotten, {} drops not recorded.",
        count(list.remembered),
        count(list.capacity.into()),
        count(list.forgotten),
        count(list.skipped),
    )
}

fn rows(offenders: &Offenders, by: Grouping, caption: &str) -> Markup {
    let is_name = by == Grouping::Name;
    let columns = [
        Column(if is_name { "Name" } else { "Source" }, Kind::Text),
        Column("By", Kind::Text),
        Column("Drops", Kind::Number),
        Column("Last drop", Kind::Number),
        Column("Until", Kind::Text),
    ];
    let list = &offenders.list;
    let rows: Vec<_> = (list.offenders.iter().zip(&offenders.holds))
        .map(|(offender, hold)| {
            vec![
                // A name may look like an address.
                if is_name {
                    text(&offender.id)
                } else {
                    source(&offender.id)
                },
                text(offender.dropper()),
                text(at_least(offender.drops, list.lower_bound)),
                text(ago(offender.last_drop_ago_ns)),
                hold_cell(offender, hold.as_ref()),
            ]
        })
        .collect();
    table(caption, &columns, &rows)
}

/// Returns the time until which a source is dropped, if it sends no more.
fn hold_cell(offender: &OffenderStatus, hold: Option<&SourceBlock>) -> Markup {
    match hold {
        None => text(super::parts::NONE),
        Some(SourceBlock { ban: Some(ban), .. }) => html! { "banned until " (until(ban)) },
        Some(_) if offender.sieve.is_some() => text("the pressure on the sieve falls"),
        Some(SourceBlock {
            retry_in_ns: Some(ns),
            ..
        }) => html! { "its next token, in " (duration(*ns)) },
        Some(_) => text("it may send"),
    }
}
