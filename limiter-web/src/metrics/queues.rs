//! The metrics of queues of clients that wait for limits on connections.

use std::{collections::BTreeMap, fmt};

use limiter_protocol::{LimitStatus, QueueStatus};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::plain::gauge_of;

/// Encodes the queues of the limits.
pub(super) fn encode(
    limits: &BTreeMap<String, LimitStatus>,
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    let queues = limits.iter();
    let queues: Vec<_> = queues
        .filter_map(|(limit, status)| Some((limit.as_str(), status.queue.as_ref()?)))
        .collect();
    encode_queues(&queues, encoder)
}

fn encode_queues(queues: &[(&str, &QueueStatus)], encoder: &mut DescriptorEncoder) -> fmt::Result {
    if queues.is_empty() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(
        "limiter_queue_waiting",
        "Clients that wait in line for a limit on connections",
        None,
        MetricType::Gauge,
    )?;
    for (limit, queue) in queues {
        let labels = [("limit", *limit)];
        ConstGauge::new(gauge_of(queue.waiting)).encode(family.encode_family(&labels)?)?;
    }
    let mut family = encoder.encode_descriptor(
        "limiter_queue_events",
        "Clients that took a ticket (queued), connected after it (resumed), or waited for too \
         long or gave up (expired), and tries for which there was no ticket (rejected)",
        None,
        MetricType::Counter,
    )?;
    for (limit, queue) in queues {
        for (event, number) in [
            ("queued", queue.queued),
            ("resumed", queue.resumed),
            ("expired", queue.expired),
            ("rejected", queue.rejected),
        ] {
            let labels = [("limit", *limit), ("event", event)];
            ConstCounter::new(number).encode(family.encode_family(&labels)?)?;
        }
    }
    let mut family = encoder.encode_descriptor(
        "limiter_queue_wait_seconds",
        "How long clients waited in line that then connected, from their first try on",
        None,
        MetricType::Histogram,
    )?;
    for (limit, queue) in queues {
        let labels = [("limit", *limit)];
        let last = queue.waits.len().saturating_sub(1);
        let bounds = (0..).map(|step| {
            if step < last {
                f64::from(1 << step)
            } else {
                f64::INFINITY
            }
        });
        let buckets: Vec<_> = bounds.zip(queue.waits.iter().copied()).collect();
        #[expect(clippy::cast_precision_loss, reason = "a sum for people")]
        let seconds = queue.waited_ns as f64 / 1e9;
        let count = queue.waits.iter().sum();
        family
            .encode_family(&labels)?
            .encode_histogram::<NoLabelSet>(seconds, count, &buckets, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prometheus_client::{collector::Collector, encoding::text::encode, registry::Registry};

    use super::*;

    #[derive(Debug)]
    struct StatusCollector(QueueStatus);

    impl Collector for StatusCollector {
        fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
            encode_queues(&[("Web", &self.0)], &mut encoder)
        }
    }

    #[test]
    fn waits_are_a_histogram_in_seconds() {
        let status = QueueStatus {
            waiting: 4,
            resumed: 3,
            waits: vec![0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            waited_ns: 1_003_500_000_000,
            ..QueueStatus::default()
        };
        let mut registry = Registry::default();
        registry.register_collector(Box::new(StatusCollector(status)));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "_waiting{limit=\"Web\"} 4",
            "_events_total{limit=\"Web\",event=\"resumed\"} 3",
            "_wait_seconds_sum{limit=\"Web\"} 1003.5",
            "_wait_seconds_count{limit=\"Web\"} 3",
            "_wait_seconds_bucket{le=\"1.0\",limit=\"Web\"} 0",
            "_wait_seconds_bucket{le=\"2.0\",limit=\"Web\"} 2",
            "_wait_seconds_bucket{le=\"512.0\",limit=\"Web\"} 2",
            "_wait_seconds_bucket{le=\"+Inf\",limit=\"Web\"} 3",
        ] {
            assert!(
                text.lines().any(|other| other.ends_with(line)),
                "no {line}:\n{text}"
            );
        }
    }
}
