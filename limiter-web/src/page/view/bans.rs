//! The tables of bans: prefix, origin, reason and end.

use limiter_policy::text::short;
use limiter_protocol::{
    BansStatus,
    bans::{BanStatus, BansPage},
};
use limiter_report::render::count;
use maud::{Markup, html};

use super::{
    super::params::BansParams,
    frame::frame,
    parts::{Column, Kind, encoded, source, table, text, time, until},
};

/// Returns the section of the overview, with the newest bans.
pub(super) fn section(newest: &[BanStatus], status: &BansStatus) -> Markup {
    let all = u64::from(status.ipv4) + u64::from(status.ipv6);
    html! {
        section #bans data-live aria-labelledby="bans-title" {
            h2 #bans-title { "Bans" }
            @if newest.is_empty() {
                p { "No bans." }
            } @else {
                (rows(newest, "The newest bans"))
            }
            p {
                (count(all)) " of up to " (count(status.settings.capacity.into())) ". "
                a href="/bans" { "All of them" }
            }
        }
    }
}

/// Returns a page of bans; `next`: the query for the next one.
pub(in crate::page) fn page(
    page: &BansPage,
    asked: &BansParams,
    next: Option<&BansParams>,
) -> Markup {
    let link = |asked: &BansParams| {
        let position = asked
            .position
            .map(|position| format!("&position={position}"));
        format!(
            "/bans?skip={}{}&prefix={}&origin={}",
            asked.skip,
            position.unwrap_or_default(),
            encoded(&asked.prefix),
            encoded(&asked.origin),
        )
    };
    frame(
        "Bans",
        &html! {
            h2 { "Bans" }
            form action="/bans" {
                label for="prefix" { "Address or prefix" }
                input #prefix name="prefix" value=(asked.prefix) autocomplete="off" size="18";
                label for="origin" { "Origin" }
                input #origin name="origin" value=(asked.origin) autocomplete="off" size="12";
                button { "Find" }
            }
            div #rows data-live {
                @if page.bans.is_empty() {
                    p { "There is no such ban here." }
                } @else {
                    (rows(&page.bans, "Bans, in no order"))
                }
            }
            nav aria-label="Rows" {
                @if let Some(next) = next { a href=(link(next)) rel="next" { "Next" } }
            }
        },
    )
}

fn rows(bans: &[BanStatus], caption: &str) -> Markup {
    let columns = [
        Column("Banned", Kind::Text),
        Column("By", Kind::Text),
        Column("Origin", Kind::Text),
        Column("Since", Kind::Text),
        Column("Until", Kind::Text),
        Column("Times", Kind::Number),
        Column("Hits", Kind::Number),
        Column("Reason", Kind::Prose),
    ];
    let rows: Vec<_> = (bans.iter())
        .map(|ban| {
            vec![
                source(&short(ban.prefix)),
                text(ban.by()),
                text(ban.origin.as_str()),
                time(ban.since),
                html! {
                    @match &ban.excluded_by {
                        Some(list) => { "no effect: excluded by " (list) }
                        None => { (until(ban)) }
                    }
                },
                text(count(ban.times.into())),
                text(count(ban.hits)),
                text(&ban.reason),
            ]
        })
        .collect();
    table(caption, &columns, &rows)
}
