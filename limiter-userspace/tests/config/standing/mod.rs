//! The standing of sources: its section, and its use in limits.

mod reserves;
mod section;
mod uses;

/// Returns a configuration of one limit on all sources together.
fn total(more: &str) -> String {
    format!(
        "limits:\n  All: {{id: total, cost: packets, burst: 2000, count: 50, period: 1s,\n    {more}}}\n"
    )
}
