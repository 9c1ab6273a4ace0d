//! The standing of sources: its section, and what limits make of it.

mod reserves;
mod section;
mod uses;

/// Returns a configuration of one limit on all sources together.
fn total(more: &str) -> String {
    format!(
        "limits:\n  All: {{id: total, cost: packets, burst: 2000, count: 50, period: 1s,\n    {more}}}\n"
    )
}
