//! What the limiter is to reach, and whether it does.

use bench_common::Layout::{V4, V6Far, V6Near};
use serde::Serialize;

use crate::{
    contender::{DROP, NFTABLES, PARSE, TABLE_1, TABLE_2, TABLE_LISTS, TABLE_RANGE},
    results::Results,
    scenario::Scenario,
};

/// One target.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) bound: Bound,
    pub(crate) unit: &'static str,
    /// `None`: it was not measured.
    pub(crate) measured: Option<f64>,
    pub(crate) met: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    Within(f64, f64),
}

use Bound::{AtLeast, AtMost, Within};

impl Bound {
    fn holds(self, measured: f64) -> bool {
        match self {
            AtLeast(least) => measured >= least,
            AtMost(most) => measured <= most,
            Within(least, most) => (least..=most).contains(&measured),
        }
    }
}

/// The store that the targets are for: our best one.
const ONE: &str = TABLE_1;
const TWO: &str = TABLE_2;
const RANGE: &str = TABLE_RANGE;
const LISTS: &str = TABLE_LISTS;

const MEBIBYTE: f64 = 1_048_576.0;

/// Every target, with what was measured.
pub(crate) fn judge(results: &Results) -> Vec<Target> {
    let v4 = |power| Scenario::new(V4, power);
    let rate = |contender, scenario| results.rate(contender, &scenario);
    let cost = |contender, scenario| results.cost(contender, &scenario);
    let against = |contender, scenario| Some(rate(ONE, scenario)? / rate(contender, scenario)?);
    let more = |contender, than, scenario| Some(cost(contender, scenario)? - cost(than, scenario)?);
    let percent_more = |this: Option<f64>, than: Option<f64>| Some((this? / than? - 1.0) * 100.0);
    let quality = results.quality(ONE);
    let footprint = &results.footprint;
    let mut targets = Vec::new();
    let mut target = |what: &str, bound: Bound, unit, measured: Option<f64>| {
        targets.push(Target {
            what: what.to_owned(),
            bound,
            unit,
            measured,
            met: measured.map(|measured| bound.holds(measured)),
        });
    };

    target(
        "veth, 1 source: against nftables",
        AtLeast(2.5),
        "×",
        against(NFTABLES, v4(0)),
    );
    target(
        "veth, 64 k sources: against nftables",
        AtLeast(3.5),
        "×",
        against(NFTABLES, v4(16)),
    );
    target(
        "veth, 1 M sources: against nftables",
        AtLeast(4.5),
        "×",
        against(NFTABLES, v4(20)),
    );
    target(
        "veth, 16 M sources: of XDP_DROP",
        AtLeast(25.0),
        "%",
        against(DROP, v4(24)).map(|ratio| ratio * 100.0),
    );
    target(
        "1 source: over parse + clock",
        AtMost(30.0),
        "ns",
        more(ONE, PARSE, v4(0)),
    );
    target(
        "16 M sources: over parse + clock",
        AtMost(190.0),
        "ns",
        more(ONE, PARSE, v4(24)),
    );
    target(
        "1 source: a second limit on the address",
        AtMost(12.0),
        "ns",
        more(TWO, ONE, v4(0)),
    );
    for layout in [V6Near, V6Far] {
        let scenario = Scenario::new(layout, 24);
        target(
            &format!("{scenario} sources: the /48 limit"),
            AtMost(60.0),
            "%",
            percent_more(cost(RANGE, scenario), cost(ONE, scenario)),
        );
        target(
            &format!("{scenario} sources: behind IPv4"),
            AtMost(25.0),
            "%",
            percent_more(cost(ONE, scenario), cost(ONE, v4(24))),
        );
    }
    target(
        "clients in the flood: good packets lost",
        AtMost(0.1),
        "%",
        quality.map(|quality| quality.good_lost.max),
    );
    target(
        "client over its limit: admitted of allowed, the least",
        Within(99.0, 100.1),
        "%",
        quality.map(|quality| quality.over.min),
    );
    target(
        "client over its limit: admitted of allowed, the most",
        Within(99.0, 100.1),
        "%",
        quality.map(|quality| quality.over.max),
    );
    target(
        "100 k overrides, 16 M sources",
        AtMost(25.0),
        "ns",
        more(LISTS, ONE, v4(24)),
    );
    target(
        "100 k overrides: read, compiled and loaded",
        AtMost(400.0),
        "ms",
        Some(footprint.overrides_seconds * 1e3),
    );
    target(
        "100 k overrides: kernel memory",
        AtMost(64.0),
        "MiB",
        Some(bytes(footprint.overrides_bytes) / MEBIBYTE),
    );
    target(
        "1 M buckets: kernel memory",
        AtMost(64.0),
        "MiB",
        Some(bytes(footprint.million_buckets_bytes) / MEBIBYTE),
    );
    let two_cpus = v4(20).on_cpus(2);
    target(
        "veth, 1 M sources: two CPUs against one",
        AtLeast(1.8),
        "×",
        (|| Some(rate(ONE, two_cpus)? / rate(ONE, v4(20))?))(),
    );
    targets
}

fn bytes(bytes: u64) -> f64 {
    crate::lane::to_f64(bytes)
}
