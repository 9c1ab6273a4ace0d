//! A suggestion as a configuration, with comments that give its basis.

use std::io::{self, Write};

use limiter_common::limit::IdFormat;
use limiter_offline::suggest::{Drops, Percentiles, Proposal, ServiceProposal, Suggestion, Terms};
use limiter_policy::{
    policy::Mode,
    text::{one_line, period, visible_json},
};
use limiter_report::render::{count, duration};

use super::wording::{fraction, summary};

/// The longest line of a comment, in characters.
const WIDTH: usize = 100;

pub(super) fn write(
    out: &mut impl Write,
    suggestion: &Suggestion,
    warnings: &[String],
    from: &str,
    interface: Option<&str>,
) -> io::Result<()> {
    let margin = suggestion.margin;
    let comment = |text: &str, out: &mut _| comment(out, "", text);
    comment(
        &format!(
            "Suggested by `limiter suggest` from {}.",
            summary(suggestion, from)
        ),
        out,
    )?;
    comment(
        &format!(
            "Each limit has the rate of busy ten seconds and the lowest burst with which it would \
             drop at most {} of the packets seen, both times {}.",
            fraction(margin.most_dropped),
            margin.headroom
        ),
        out,
    )?;
    comment(
        "All of them observe: they count the packets that they would drop, and drop none. After some days \
         of `limiter status`, or `limiter suggest --running`, enforce one by one with `mode: \
         enforce`.",
        out,
    )?;
    for warning in warnings {
        comment(&format!("Warning: {}.", one_line(warning)), out)?;
    }
    match interface {
        // JSON strings are valid YAML.
        Some(interface) => writeln!(
            out,
            "interfaces: [{}]",
            visible_json(&serde_json::to_string(interface)?)
        )?,
        None => comment("Add `interfaces: [eth0]`, or give them with -i.", out)?,
    }
    writeln!(out, "limits:")?;
    for proposed in &suggestion.services {
        service(out, proposed)?;
    }
    Ok(())
}

fn service(out: &mut impl Write, proposed: &ServiceProposal) -> io::Result<()> {
    let mut about = vec![format!(
        "{}: {} packets, {} bytes",
        proposed.service,
        count(proposed.packets),
        count(proposed.bytes)
    )];
    if proposed.service.is_tcp() {
        let connections = count(proposed.new_connections);
        about.push(format!(", {connections} new connections"));
    }
    about.push(format!(", of {} sources", count(proposed.sources)));
    if proposed.one_in > 1 {
        let one_in = count(proposed.one_in);
        about.push(format!(
            " in 1 of {one_in} ranges (a random sample of all IPv4 /24s and IPv6 /48s: there are \
             too many)"
        ));
    }
    about.push(".".to_owned());
    if proposed.slot_ns > 0 {
        let slot = duration(proposed.slot_ns);
        about.push(format!(
            " A source's packets within {slot} count as sent at once: there were too many packets."
        ));
    }
    if proposed.limits.is_empty() {
        about.push(" Too few for a limit.".to_owned());
    }
    writeln!(out)?;
    comment(out, "  ", &about.concat())?;
    for limit in &proposed.limits {
        proposal(out, proposed, limit)?;
    }
    Ok(())
}

fn proposal(out: &mut impl Write, proposed: &ServiceProposal, limit: &Proposal) -> io::Result<()> {
    let is_total = limit.id == IdFormat::Total.name();
    writeln!(out, "  {}:", limit.name)?;
    comment(out, "    ", &peaks(limit, is_total))?;
    comment(
        out,
        "    ",
        &format!("It would drop {}.", drops(&limit.drops, is_total)),
    )?;
    match &limit.holdout {
        Some(halves) => comment(
            out,
            "    ",
            &format!(
                "Tested: by the first half of the time alone it would be {}, and drop {} of that \
                 half's packets, and {} of the second half's.",
                terms(halves.terms),
                fraction(halves.learned.fraction()),
                fraction(halves.tested.fraction())
            ),
        )?,
        None => comment(
            out,
            "    ",
            "Not tested: a half of the time has too few packets.",
        )?,
    }
    if is_total {
        comment(
            out,
            "    ",
            "A flood uses up the budget that all sources share. Give it a `reserve` before you enforce it.",
        )?;
    }
    writeln!(out, "    id: {}", limit.id)?;
    if let Some(length) = limit.prefix_length {
        writeln!(out, "    prefix-length: {length}")?;
    }
    writeln!(out, "    cost: {}", limit.cost.name())?;
    writeln!(out, "    match: {}", proposed.service.matching())?;
    writeln!(out, "    burst: {}", limit.terms.burst)?;
    writeln!(out, "    count: {}", limit.terms.count)?;
    writeln!(out, "    period: {}", period(limit.terms.period_ns))?;
    writeln!(out, "    mode: {}", Mode::Observe.name())
}

/// Describes the peaks of the busiest keys.
fn peaks(limit: &Proposal, is_total: bool) -> String {
    let cost = match limit.cost.name() {
        "new-connections" => "new connections",
        name => name,
    };
    if is_total {
        return format!(
            "At most {} {cost} came in a second, {} in ten.",
            count(limit.peak_1s.max),
            count(limit.peak_10s.max)
        );
    }
    let each = |percentiles: &Percentiles| {
        let Percentiles {
            p50,
            p90,
            p99,
            p999,
            max,
        } = *percentiles;
        [p50, p90, p99, p999, max].map(count).join(", ")
    };
    format!(
        "The most {cost} of {}, at the 50th, 90th, 99th, 99.9th and 100th percentile of {}: in a \
         second {}; in ten {}.",
        key(limit),
        count(limit.drops.keys),
        each(&limit.peak_1s),
        each(&limit.peak_10s)
    )
}

fn key(limit: &Proposal) -> String {
    match limit.prefix_length {
        Some(length) => format!("a /{length}"),
        None => "an address".to_owned(),
    }
}

fn drops(drops: &Drops, is_total: bool) -> String {
    let packets = format!(
        "{} of {} packets ({})",
        count(drops.dropped),
        count(drops.packets),
        fraction(drops.fraction())
    );
    if is_total {
        packets
    } else {
        format!(
            "{packets}, of {} of {} keys",
            count(drops.hit),
            count(drops.keys)
        )
    }
}

fn terms(terms: Terms) -> String {
    format!(
        "{{burst: {}, count: {}, period: {}}}",
        terms.burst,
        terms.count,
        period(terms.period_ns)
    )
}

/// Writes a comment, wrapped.
fn comment(out: &mut impl Write, indent: &str, text: &str) -> io::Result<()> {
    let start = format!("{indent}#");
    let mut line = start.clone();
    for word in text.split_whitespace() {
        if line.len() > start.len() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{line}")?;
            line.clone_from(&start);
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(out, "{line}")
}
