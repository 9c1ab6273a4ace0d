//! Formats the traffic of sources by standing, and the standing of one source.

use limiter_common::standing::Standing;
use limiter_policy::text::short;
use limiter_protocol::{
    Explanation, LimitExplanation, ShortageStatus, StandingExplanation, StandingReason,
    StandingStatus, counted_name,
};

use crate::render::{ago, count, counted, duration, table_without};

/// Describes the present shortage, or its absence.
#[must_use]
pub fn shortage_line(shortage: Option<&ShortageStatus>) -> String {
    match shortage {
        None => "no shortage: no packet is refused for a reserve".to_owned(),
        Some(shortage) => format!(
            "SHORTAGE for {}: packets are refused for reserves, last {}",
            duration(shortage.began_ago_ns),
            ago(shortage.last_refused_ago_ns),
        ),
    }
}

/// Formats the results of DNS cookies; `None`: cookies are not checked.
#[must_use]
pub fn cookies_line(status: &StandingStatus) -> Option<String> {
    let of_each = status.dns_cookies.iter();
    let of_each = of_each.map(|(check, number)| format!("{} {check}", count(*number)));
    let of_each: Vec<String> = of_each.collect();
    (!of_each.is_empty()).then(|| {
        format!(
            "DNS cookies of queries that reserves refused: {}",
            of_each.join(", ")
        )
    })
}

/// Lays out the packets of each standing at each limit with a reserve.
#[must_use]
pub fn traffic_table(status: &StandingStatus) -> String {
    const WOULD_DROP: usize = 4;
    let header = ["limit", "standing", "passed", "dropped", "would drop"];
    let all = || status.limits.values().flatten();
    let hidden: &[usize] = if all().all(|traffic| traffic.would_drop_packets == 0) {
        &[WOULD_DROP]
    } else {
        &[]
    };
    let rows = status.limits.iter().flat_map(|(limit, traffic)| {
        traffic.iter().map(|traffic| {
            [
                limit.clone(),
                counted_name(traffic.standing).to_owned(),
                count(traffic.passed_packets),
                count(traffic.dropped_packets),
                count(traffic.would_drop_packets),
            ]
        })
    });
    table_without(hidden, header, [2, 3, 4], rows)
}

/// Describes the standing of an address, and its effects.
#[must_use]
pub fn explanation_lines(explanation: &Explanation) -> Vec<String> {
    let Some(standing) = &explanation.standing else {
        return Vec::new();
    };
    let mut lines = vec![standing_line(standing)];
    if let Some(shortage) = &standing.shortage {
        lines.push(shortage_line(Some(shortage)));
    }
    let limits = explanation.limits.iter();
    lines.extend(limits.filter_map(|limit| change_line(limit, standing.standing)));
    lines
}

/// Describes why a source has its standing.
#[must_use]
pub fn reason_text(explanation: &StandingExplanation) -> String {
    let StandingExplanation { standing, why, .. } = explanation;
    let occasions = || counted(explanation.visits as usize, "occasion");
    let because = match why {
        StandingReason::List => "it is on a list of proven sources".to_owned(),
        StandingReason::Trusted => "an operator trusts it".to_owned(),
        StandingReason::Handshake => {
            "it completed a TCP handshake or sent a valid DNS cookie".to_owned()
        }
        StandingReason::Fleet => "another node of the fleet has proven it".to_owned(),
        StandingReason::Visits if *standing == Standing::Unknown => {
            format!("it came on {} so far", occasions())
        }
        StandingReason::Visits => format!("it came on {}", occasions()),
        StandingReason::Retry => "it came again after it was refused".to_owned(),
        StandingReason::Nothing => "nothing is known of it".to_owned(),
    };
    if explanation.fresh {
        return format!("{because}, during a shortage or shortly before it");
    }
    because
}

fn standing_line(explanation: &StandingExplanation) -> String {
    let StandingExplanation {
        source, standing, ..
    } = explanation;
    let because = reason_text(explanation);
    let mut line = format!("{} is {}: {because}", short(*source), standing.name());
    for (label, ns) in [
        ("gained", explanation.gained_ago_ns),
        ("last seen", explanation.last_visit_ago_ns),
    ] {
        if let Some(ns) = ns {
            line.extend([", ", label, " ", &ago(ns)]);
        }
    }
    if let Some(ns) = explanation.ends_in_ns {
        line.extend([", for ", &duration(ns), " more"]);
    }
    line
}

/// Describes a standing's effect at a limit; `None`: it has none.
fn change_line(limit: &LimitExplanation, standing: Standing) -> Option<String> {
    let (name, standing) = (&limit.limit, standing.name());
    if limit.other_standing {
        return Some(format!("{name} does not count {standing} sources"));
    }
    let reserve = limit.reserve.as_ref()?;
    let left = count(limit.remaining);
    let must = match reserve.tokens {
        0 => format!("{standing} sources may use the whole bucket"),
        tokens => format!("{standing} sources must leave {}", count(tokens)),
    };
    let now = if reserve.passes {
        "a packet passes now".to_owned()
    } else {
        format!("a packet passes in {}", duration(reserve.retry_in_ns))
    };
    Some(format!("{name}: {must}, {left} are left: {now}"))
}

#[cfg(test)]
mod tests;
