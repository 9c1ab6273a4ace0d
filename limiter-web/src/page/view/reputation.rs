//! Lists, standing and sieves.

use limiter_policy::lists::ListStatus;
use limiter_protocol::{StandingTraffic, Status, counted_name, sieves::SieveBrief};
use limiter_report::{
    lists::list_warnings,
    render::{count, duration},
    sieves as sieve, standing,
};
use maud::{Markup, html};

use super::parts::{Column, Kind, NONE, table, text};

pub(super) fn lists(lists: &[ListStatus]) -> Markup {
    let columns = [
        Column("List", Kind::Text),
        Column("State", Kind::Text),
        Column("Age", Kind::Number),
        Column("Stale after", Kind::Number),
        Column("IPv4", Kind::Number),
        Column("IPv6", Kind::Number),
        Column("Bad lines", Kind::Number),
        Column("Used by", Kind::Prose),
        Column("Files", Kind::Prose),
    ];
    let time = |ns: Option<u64>| text(ns.map_or_else(|| NONE.to_owned(), duration));
    let rows: Vec<_> = (lists.iter())
        .map(|list| {
            let uses = list.used_by.iter().map(ToString::to_string);
            let files = list.files.iter();
            let files = files.map(|file| file.report.path.display().to_string());
            vec![
                text(&list.list),
                text(list.state.name()),
                time(list.age_ns),
                time(list.max_age_ns),
                text(count(list.ipv4_prefixes)),
                text(count(list.ipv6_prefixes)),
                text(count(list.bad_lines)),
                text(uses.collect::<Vec<_>>().join(", ")),
                text(files.collect::<Vec<_>>().join(", ")),
            ]
        })
        .collect();
    html! {
        section #lists data-live aria-labelledby="lists-title" {
            h2 #lists-title { "Lists" }
            @if rows.is_empty() {
                p { "There are no lists." }
            } @else {
                (table("Lists of addresses", &columns, &rows))
            }
            @for warning in lists.iter().flat_map(list_warnings) { p.warning { (warning) } }
        }
    }
}

pub(super) fn standing(status: &Status) -> Markup {
    let columns = [
        Column("Limit", Kind::Text),
        Column("Standing", Kind::Text),
        Column("Passed", Kind::Number),
        Column("Dropped", Kind::Number),
        Column("Would have dropped", Kind::Number),
    ];
    let row = |limit: &String, traffic: &StandingTraffic| {
        vec![
            text(limit),
            text(counted_name(traffic.standing)),
            text(count(traffic.passed_packets)),
            text(count(traffic.dropped_packets)),
            text(count(traffic.would_drop_packets)),
        ]
    };
    html! {
        section #standing data-live aria-labelledby="standing-title" {
            h2 #standing-title { "Standing" }
            @match &status.standing {
                None => { p { "No limit uses standing." } }
                Some(standing) => {
                    @let rows = (standing.limits.iter())
                        .flat_map(|(limit, all)| all.iter().map(move |one| row(limit, one)))
                        .collect::<Vec<_>>();
                    p { (standing::shortage_line(standing.shortage.as_ref())) }
                    @if let Some(error) = &standing.handshakes_error {
                        p.warning { "Handshakes prove no source: " (error) }
                    }
                    @if !rows.is_empty() { (table("Packets by standing", &columns, &rows)) }
                    @if let Some(line) = standing::cookies_line(standing) { p { (line) } }
                }
            }
        }
    }
}

pub(super) fn sieves(sieves: &[SieveBrief]) -> Markup {
    html! {
        section #sieves data-live aria-labelledby="sieves-title" {
            h2 #sieves-title { "Sieves" }
            @if sieves.is_empty() {
                p { "There are no sieves." }
            }
            @for brief in sieves { p { (sieve::line(brief)) } }
        }
    }
}
