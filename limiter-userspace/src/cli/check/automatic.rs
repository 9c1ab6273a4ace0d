//! Explains automatic rates in `limiter check`.

use std::io::Write;

use limiter_host::capacity::LossFilter;
use limiter_policy::policy::{Limit, Policy};
use limiter_protocol::OverloadKind;

use limiter_report::render::count;

/// Prints a line for each limit with an automatic rate.
pub(super) fn print(out: &mut impl Write, policy: &Policy) -> anyhow::Result<()> {
    for line in policy.limits.iter().filter_map(line) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn line(limit: &Limit) -> Option<String> {
    let (floor, ceiling) = limit.automatic()?;
    let loss_filter = LossFilter::of(limit);
    let kinds: Vec<_> = OverloadKind::ALL
        .into_iter()
        .filter(|kind| loss_filter.counts(*kind))
        .map(|kind| match kind {
            OverloadKind::ReceiveBuffer if !loss_filter.ports().is_empty() => {
                "receive buffers of UDP sockets on its ports"
            }
            OverloadKind::ReceiveBuffer => "receive buffers of any UDP socket",
            OverloadKind::ListenQueue => "queues of any TCP listener",
            OverloadKind::Backlog => "backlogs of CPUs",
            OverloadKind::FullCpu => "cards whose CPU is full",
        })
        .collect();
    Some(format!(
        "{}: automatic rate from {} to {} a second, by what is lost in {}; {} without a daemon",
        limit.name,
        count(floor),
        count(ceiling),
        kinds.join(", "),
        count(floor),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::total;

    #[track_caller]
    fn check(more: &str, by: &str) {
        let policy = total(&format!("count: auto, floor: 2000{more}"));
        let mut shown = Vec::new();
        print(&mut shown, &policy).unwrap();
        let expected = format!(
            "All: automatic rate from 2 000 to 1 000 000 a second, by what is lost in {by}; 2 000 \
             without a daemon\n"
        );
        assert_eq!(String::from_utf8(shown).unwrap(), expected);
    }

    #[test]
    fn what_moves_the_rate() {
        let all = "receive buffers of any UDP socket, queues of any TCP listener, backlogs of CPUs, \
                   cards whose CPU is full";
        check("", all);
        check(
            ", match: {protocol: udp, destination-port: 53}",
            "receive buffers of UDP sockets on its ports, backlogs of CPUs, cards whose CPU is full",
        );
        check(
            ", match: {protocol: tcp, destination-port: 80}",
            "queues of any TCP listener, backlogs of CPUs, cards whose CPU is full",
        );
    }
}
