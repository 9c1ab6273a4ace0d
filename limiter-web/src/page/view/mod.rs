//! The pages as HTML. maud escapes all text of configurations, feeds and bans.

mod bans;
mod connections;
mod explain;
mod fleet;
mod frame;
mod health;
mod limits;
mod offenders;
mod parts;
mod reputation;
#[cfg(test)]
mod tests;
mod traffic;

use maud::{Markup, html};

use self::frame::frame;
pub(super) use self::{
    bans::page as bans, explain::page as explanation, offenders::page as offenders,
};
use super::snapshot::Snapshot;

pub(super) fn overview(snapshot: &Snapshot) -> Markup {
    let status = &snapshot.status;
    frame(
        "Overview",
        &html! {
            (health::section(snapshot))
            @if let Some(fleet) = &snapshot.fleet { (fleet::section(fleet)) }
            (traffic::section(snapshot))
            (offenders::section(&snapshot.offenders))
            (bans::section(&snapshot.bans, &status.bans))
            (limits::section(snapshot))
            (reputation::lists(&status.lists))
            (reputation::standing(status))
            (reputation::sieves(&status.sieves))
        },
    )
}

/// Returns a page with a single sentence.
pub(super) fn message(text: &str) -> Markup {
    frame("Message", &html! { p { (text) } })
}
