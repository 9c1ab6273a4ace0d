//! The lists as metrics.

use std::fmt;

use jiff::Timestamp;
use limiter_policy::lists::ListStatus;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::plain::gauge_of;

/// A metric of each list.
struct Gauge {
    name: &'static str,
    help: &'static str,
    /// `None`: the list does not have this metric.
    value: fn(&ListStatus) -> Option<i64>,
}

const GAUGES: [Gauge; 4] = [
    Gauge {
        name: "limiter_list_modified_timestamp_seconds",
        help: "When the oldest content of the list's files was written, in seconds since 1970",
        value: |list| modified(list).map(Timestamp::as_second),
    },
    Gauge {
        name: "limiter_list_bad_lines",
        help: "Lines of the list's files that are not addresses",
        value: |list| Some(gauge_of(list.bad_lines)),
    },
    Gauge {
        name: "limiter_list_stale",
        help: "1: a file of the list is older than its max-age",
        value: |list| {
            let mut files = list.files.iter();
            Some(files.any(|file| file.state.is_stale()).into())
        },
    },
    Gauge {
        name: "limiter_list_refused",
        help: "1: a file of the list was refused when last read; its previous content stays in force",
        value: |list| {
            let mut files = list.files.iter();
            Some(files.any(|file| file.report.kept_old.is_some()).into())
        },
    },
];

pub(super) fn encode(lists: &[ListStatus], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "limiter_list_prefixes",
        "Prefixes of the list in force, by address family",
        None,
        MetricType::Gauge,
    )?;
    for list in lists {
        for (name, prefixes) in [("ipv4", list.ipv4_prefixes), ("ipv6", list.ipv6_prefixes)] {
            let labels = [("list", list.list.as_str()), ("family", name)];
            ConstGauge::new(gauge_of(prefixes)).encode(family.encode_family(&labels)?)?;
        }
    }
    for Gauge { name, help, value } in GAUGES {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for list in lists {
            if let Some(value) = value(list) {
                let labels = [("list", list.list.as_str())];
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}

fn modified(list: &ListStatus) -> Option<Timestamp> {
    let files = list.files.iter();
    files.filter_map(|file| file.report.modified).min()
}
