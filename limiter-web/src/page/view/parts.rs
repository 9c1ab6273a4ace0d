//! Parts shared by the pages: tables, links and times.

use jiff::Timestamp;
use limiter_protocol::bans::BanStatus;
use maud::{Markup, html};

use limiter_report::render::duration;

/// The text of an absent value.
pub(super) const NONE: &str = "–";

/// A column of a table: its heading, and the kind of its cells.
pub(super) struct Column(pub(super) &'static str, pub(super) Kind);

#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// A name or a time, on one line.
    Text,
    /// A sentence or a list, on several.
    Prose,
    Number,
}

impl Kind {
    const fn class(self) -> Option<&'static str> {
        match self {
            Self::Text => None,
            Self::Prose => Some("prose"),
            Self::Number => Some("number"),
        }
    }
}

/// Returns a table, which scrolls by itself if it is too wide.
pub(super) fn table(caption: &str, columns: &[Column], rows: &[Vec<Markup>]) -> Markup {
    html! {
        div.wide role="region" aria-label=(caption) tabindex="0" {
            table {
                caption { (caption) }
                thead {
                    tr {
                        @for Column(name, kind) in columns {
                            th scope="col" class=[kind.class()] { (name) }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (number, (cell, Column(_, kind))) in row.iter().zip(columns).enumerate() {
                                @if number == 0 {
                                    th scope="row" class=[kind.class()] { (cell) }
                                } @else {
                                    td class=[kind.class()] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a text as a cell.
pub(super) fn text(text: impl AsRef<str>) -> Markup {
    html! { (text.as_ref()) }
}

/// Returns a link that explains an address; plain text if it is not an address.
pub(super) fn source(id: &str) -> Markup {
    let is_address = id.parse::<std::net::IpAddr>().is_ok();
    html! {
        @if is_address {
            // No character of an address has a meaning in a query.
            a href=(format!("/explain?address={id}")) { (id) }
        } @else {
            (id)
        }
    }
}

/// Returns a time of day, with the date.
pub(super) fn time(at: Timestamp) -> Markup {
    let at = format!("{at:.0}");
    html! { time datetime=(at) { (at) } }
}

pub(super) fn until(ban: &BanStatus) -> Markup {
    match (ban.until, ban.ends_in_ns) {
        (Some(at), Some(ns)) => html! { (time(at)) ", for " (duration(ns)) " more" },
        _ => text("it is lifted"),
    }
}

/// Encodes a value for a link.
pub(super) fn encoded(value: &str) -> String {
    form_urlencoded::byte_serialize(value.as_bytes()).collect()
}
