//! The two text formats of metrics, and the choice by a client's `Accept` fields.

use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus' own, version 0.0.4, which every client reads.
    Prometheus,
    /// OpenMetrics 1.0, for clients that accept it.
    OpenMetrics,
}

impl Format {
    /// Returns the format that a client prefers, by its fields `Accept` (RFC 9110, 12.5.1). Without any, it is
    /// Prometheus' own.
    pub(super) fn accepted<'a>(fields: impl Iterator<Item = &'a str>) -> Self {
        let (mut open_metrics, mut other) = (0.0, 0.0);
        for range in fields.flat_map(|field| field.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|parameter| {
                let (name, value) = parameter.split_once('=')?;
                name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
            });
            let quality = quality.map_or(Some(1.0), |quality| quality.parse::<f32>().ok());
            let quality = quality.filter(|quality| (0.0..=1.0).contains(quality));
            let best = match media_type.as_str() {
                "application/openmetrics-text" => &mut open_metrics,
                "text/plain" | "text/*" | "*/*" => &mut other,
                _ => continue,
            };
            *best = f32::max(*best, quality.unwrap_or(0.0));
        }
        if open_metrics > 0.0 && open_metrics >= other {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Converts a text from OpenMetrics to Prometheus' own format: a metric's description names its samples, and
/// there is no end mark.
pub(super) fn prometheus(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        if let Some(line) = line.strip_prefix("# HELP ") {
            help = line.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(described) = line.strip_prefix("# TYPE ") {
            let (name, kind) = described.split_once(' ').unwrap_or((described, ""));
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            // Writing into a string cannot fail.
            let _ = write!(
                text,
                "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"
            );
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_ask_for() {
        use Format::{OpenMetrics, Prometheus};
        for (fields, expected) in [
            (&[][..], Prometheus),
            (&[""], Prometheus),
            (&["*/*"], Prometheus),
            (
                &["text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"],
                Prometheus,
            ),
            (&["application/openmetrics-text"], OpenMetrics),
            (
                &["text/plain", "Application/OpenMetrics-Text; version=1.0.0"],
                OpenMetrics,
            ),
            // Prometheus 2 and 3.
            (
                &[
                    "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                ],
                OpenMetrics,
            ),
            (
                &[
                    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                   application/openmetrics-text;version=0.0.1;q=0.5,\
                   text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,\
                   */*;q=0.2",
                ],
                OpenMetrics,
            ),
            (
                &["text/plain;version=0.0.4;q=1,application/openmetrics-text;q=0.5"],
                Prometheus,
            ),
            (&["application/openmetrics-text;q=0"], Prometheus),
            (&["application/openmetrics-text; Q = 0.001"], OpenMetrics),
            (&["application/openmetrics-text;q=NaN"], Prometheus),
            (&["application/openmetrics-text;q=2"], Prometheus),
            (&["application/vnd.google.protobuf;proto=x"], Prometheus),
        ] {
            let accepted = Format::accepted(fields.iter().copied());
            assert_eq!(accepted, expected, "{fields:?}");
        }
    }

    #[test]
    fn the_same_metrics_in_prometheus_format() {
        let open_metrics = "\
# HELP limiter_build The build that runs.
# TYPE limiter_build info
limiter_build_info{version=\"0.1.0\"} 1
# HELP limiter_packets Packets: all # of them.
# TYPE limiter_packets counter
limiter_packets_total{reason=\"a b\"} 7
limiter_packets_total{reason=\"c\"} 0
# HELP limiter_age_seconds How old.
# TYPE limiter_age_seconds gauge
# UNIT limiter_age_seconds seconds
limiter_age_seconds 1.5
# EOF
";
        assert_eq!(
            prometheus(open_metrics),
            "\
# HELP limiter_build_info The build that runs.
# TYPE limiter_build_info gauge
limiter_build_info{version=\"0.1.0\"} 1
# HELP limiter_packets_total Packets: all # of them.
# TYPE limiter_packets_total counter
limiter_packets_total{reason=\"a b\"} 7
limiter_packets_total{reason=\"c\"} 0
# HELP limiter_age_seconds How old.
# TYPE limiter_age_seconds gauge
limiter_age_seconds 1.5
"
        );
        assert_eq!(prometheus("# EOF\n"), "");
    }
}
