//! The standing of sources: the section, and the limits that use it.

mod reserves;
mod section;
mod uses;

fn total(more: &str) -> String {
    format!(
        "limits:\n  All: {{id: total, cost: packets, burst: 2000, count: 50, period: 1s,\n    {more}}}\n"
    )
}
