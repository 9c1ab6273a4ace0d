//! Limits on all sources together, with a reserve for known sources.

use anyhow::Result;
use bench_common::Source;
use limiter_common::{
    address::Address,
    policy::Features,
    standing::{Event, Kind, Record, SourceId, Tick},
};
use limiter_datapath::kernel::{StandingMaps, monotonic_now};

use super::terms::Terms;

/// How such a limit is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    /// There are tokens for all sources. They come for the first time.
    Calm,
    /// There is a shortage, in which every source is familiar and passes.
    ShortOfRoom,
    /// All sources are unknown, and the remaining tokens are reserved for familiar ones.
    Spent,
}

/// Ticks from now until the shortage ends: long after the measurement, but not so many that the end
/// would count as past.
const LATER: u32 = Tick::AHEAD / 2;

/// How many packets of all sources pass per hour when nearly all are refused.
pub(super) const SPENT_COUNT: u64 = 1000;

impl Situation {
    /// Returns the limit, and the settings of standing it needs. If it never refuses, its rate is
    /// `count` packets per second.
    pub(super) fn limits(self, count: u64) -> String {
        match self {
            Self::Calm | Self::ShortOfRoom => {
                line(count, "1s", ", reserve: {familiar: 10%, unknown: 50%}")
            }
            // In a large flood, most sources come again within seconds. Hardly any comes as late as
            // this setting asks for, so nearly all stay unknown.
            Self::Spent => {
                line(
                    SPENT_COUNT,
                    "1h",
                    ", reserve: {familiar: 10%, retried: 50%}",
                ) + "standing: {retry: {after: 11950ms, within: 12s}}\n"
            }
        }
    }
}

/// Returns the same limit without reserves.
pub(super) fn without(count: u64) -> String {
    line(count, "1s", "")
}

fn line(count: u64, period: &str, reserve: &str) -> String {
    format!(
        "  Everybody: {{id: total, cost: packets, burst: {count}, count: {count}, period: {period}\
         {reserve}}}\n"
    )
}

/// Makes all sources of the flood familiar since long ago, and begins a shortage that outlasts the
/// measurement.
pub(super) fn introduce(maps: &mut StandingMaps, features: &Features, terms: &Terms) -> Result<()> {
    let now_ns = monotonic_now();
    let now = Tick::of_ns(now_ns);
    let long_ago = Tick(now.0.wrapping_sub(2 * features.standing.fresh_ticks));
    let record = Record::new(Kind::Familiar, false, 3, now, long_ago);
    for index in 0..1 << terms.sources_log2 {
        let address = match terms.layout.source(index) {
            Source::V4(address) => Address::v4(address.to_be_bytes()),
            Source::V6(high, low) => Address::v6(high.to_be_bytes(), low.to_be_bytes()),
        };
        let source = SourceId::new(&features.standing, &address);
        maps.record_event(features, source, Event::Recall { record }, now_ns)?;
    }
    maps.begin_shortage(now, Tick(now.0.wrapping_add(LATER)))?;
    Ok(())
}
