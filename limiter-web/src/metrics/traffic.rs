//! The metrics of packets: by interface and reason, and by limit.

use std::fmt;

use limiter_common::{
    counters::{LimitTraffic, Traffic},
    reason::Action,
};
use limiter_protocol::web::Measurements;
use prometheus_client::encoding::DescriptorEncoder;

use super::labelled::{LabelledRow, counters};

pub(super) fn encode(measurements: &Measurements, encoder: &mut DescriptorEncoder) -> fmt::Result {
    traffic(
        encoder,
        [
            (
                "limiter_packets",
                "Packets by interface, verdict and reason",
            ),
            (
                "limiter_bytes",
                "Bytes of these packets, from the Ethernet header on",
            ),
        ],
        &by_reason(measurements),
    )?;
    traffic(
        encoder,
        [
            (
                "limiter_limit_packets",
                "Packets that each limit passed, dropped, or would have dropped if it enforced",
            ),
            (
                "limiter_limit_bytes",
                "Bytes of these packets, from the Ethernet header on",
            ),
        ],
        &by_limit(measurements),
    )?;
    traffic(
        encoder,
        [
            (
                "limiter_answers",
                "Answers that were sent for packets that each limit dropped",
            ),
            (
                "limiter_answer_bytes",
                "Bytes of these answers, from the Ethernet header on",
            ),
        ],
        &by_answer(measurements),
    )
}

/// Encodes packets and bytes under their names, each with its help.
fn traffic<const N: usize>(
    encoder: &mut DescriptorEncoder,
    [packets, bytes]: [(&str, &str); 2],
    rows: &[LabelledRow<N, Traffic>],
) -> fmt::Result {
    let numbers = |number: fn(&Traffic) -> u64| -> Vec<_> {
        let rows = rows.iter();
        rows.map(|(labels, traffic)| (labels.clone(), number(traffic)))
            .collect()
    };
    let rows = numbers(|traffic| traffic.packets);
    counters(encoder, packets.0, packets.1, &rows)?;
    counters(encoder, bytes.0, bytes.1, &numbers(|traffic| traffic.bytes))
}

fn by_reason(measurements: &Measurements) -> Vec<LabelledRow<3, Traffic>> {
    let malformed = measurements.status.policy.malformed;
    let interfaces = measurements.interfaces.iter();
    let rows = interfaces.flat_map(|interface| {
        let reasons = interface.reasons.iter();
        reasons.map(|(reason, traffic)| {
            let labels = [
                ("interface", interface.interface.clone()),
                ("verdict", reason.action(malformed).name().to_owned()),
                ("reason", reason.name().to_owned()),
            ];
            (labels, *traffic)
        })
    });
    rows.collect()
}

fn by_limit(measurements: &Measurements) -> Vec<LabelledRow<2, Traffic>> {
    let limits = measurements.status.limits.iter();
    let rows = limits.flat_map(|(limit, status)| {
        let LimitTraffic {
            passed,
            dropped,
            would_drop,
        } = status.into();
        [
            (Action::Pass.name(), passed),
            (Action::Drop.name(), dropped),
            ("would_drop", would_drop),
        ]
        .map(|(decision, traffic)| {
            let labels = [("limit", limit.clone()), ("decision", decision.to_owned())];
            (labels, traffic)
        })
    });
    rows.collect()
}

fn by_answer(measurements: &Measurements) -> Vec<LabelledRow<2, Traffic>> {
    let limits = measurements.limits.iter();
    let rows = limits.flat_map(|limit| {
        let answers = limit.answers.iter();
        answers.map(|(answer, traffic)| {
            let labels = [
                ("limit", limit.limit.clone()),
                ("answer", answer.name().to_owned()),
            ];
            (labels, *traffic)
        })
    });
    rows.collect()
}
