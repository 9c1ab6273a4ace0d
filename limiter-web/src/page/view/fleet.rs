//! The fleet: its store, its nodes, and this node's shares of budgets.

use limiter_protocol::FleetStatus;
use limiter_report::fleet;
use maud::{Markup, html};

use super::parts::{Column, Kind, table, text};

/// Returns the section about the fleet.
pub(super) fn section(status: &FleetStatus) -> Markup {
    let node_columns = [
        Column("Node", Kind::Text),
        Column("Version", Kind::Text),
        Column("Policy", Kind::Text),
        Column("Heartbeat", Kind::Text),
        Column("Lag", Kind::Text),
        Column("Differs", Kind::Text),
    ];
    let share_columns = [
        Column("Limit", Kind::Text),
        Column("Share", Kind::Number),
        Column("Wanted", Kind::Number),
        Column("Active keys", Kind::Number),
        Column("Rate", Kind::Number),
        Column("Burst", Kind::Number),
        Column("Problem", Kind::Prose),
    ];
    html! {
        section #fleet data-live aria-labelledby="fleet-title" {
            h2 #fleet-title { "Fleet" }
            p { "This is node " (status.fleet.node) " of the fleet " (status.fleet.name) "." }
            p class=[(!status.connected).then_some("warning")] { (fleet::store(status)) }
            p { (fleet::bans(status)) }
            p { (fleet::ban_counts(status)) }
            @if let Some(sources) = fleet::sources(status) {
                @let is_lost = status.sources.as_ref().is_some_and(|sources| sources.error.is_some());
                p class=[is_lost.then_some("warning")] { (sources) }
            }
            @if let Some(refused) = fleet::refused(status) { p.warning { (refused) } }
            @if let Some(pushes) = fleet::pushes(status) { p { (pushes) } }
            @if !status.shares.is_empty() {
                p class=[status.leases_error.is_some().then_some("warning")] { (fleet::sharing(status)) }
                (table("Shared limits", &share_columns, &cells(fleet::shares(status))))
            }
            p { (fleet::nodes_in_all(status)) }
            @if !status.nodes.is_empty() {
                (table("Nodes", &node_columns, &cells(fleet::nodes(status))))
            }
        }
    }
}

fn cells<const N: usize>(rows: Vec<[String; N]>) -> Vec<Vec<Markup>> {
    let rows = rows.into_iter();
    rows.map(|row| row.map(text).to_vec()).collect()
}
