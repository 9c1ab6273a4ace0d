//! This limiter, through its own library.

use std::{fmt::Write as _, net::Ipv4Addr};

use anyhow::{Result, anyhow};
use bench_common::Sink;
use limiter_common::{
    address::Address,
    ban::{Ban, BanKey, BanText, FOREVER},
    sieve::{Pressure, pressure_of_sieve},
    strategy::Strategy,
};
use limiter_datapath::kernel::{
    BanMaps, ClockSource, Instance, LogLevel, OBJECT, Settings, possible_cpus,
};
use limiter_policy::{
    config::{self, Buckets, Store},
    policy::CompiledPolicy,
};

use super::{
    limiter_memory::LimiterMemory,
    standing::{self, Situation},
    terms::{Override, ROOM, Terms},
    windows,
};
use crate::{drawing::Drawing, objects};

/// The limits that count each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limits {
    /// Packets of each address.
    Address,
    /// Packets and bytes of each address.
    AddressTwice,
    /// Packets of each address and of its range.
    AddressAndRange,
    /// Packets and bytes of each address and of its range.
    Four,
    /// Packets of each address, and of all addresses together.
    AddressAndTotal,
    /// The same, but the second limit has reserves.
    Standing(Situation),
    /// As [`Limits::Address`], with another rate for each of 100 000 prefixes.
    ManyOverrides,
    /// As [`Limits::Address`], with 100 000 prefixes on a list that is blocked.
    ManyListed,
    /// As [`Limits::Address`], with 500 000 other addresses banned.
    ManyBans,
    /// As [`Limits::Address`], with a sieve that scores every packet and drops none.
    Sieve,
    /// As [`Limits::Address`], shared with another node: this node has the minimum share of each address's rate.
    SharedLimit,
    /// Packets of each address, the same number per second, by this window strategy.
    Window(Strategy),
    /// Packets of each address, by a moving window of this count. It is long enough that none is refused and most find
    /// others in the log.
    MovingWindow(u64),
    /// [`windows::REFUSED_COUNT`] packets of each address per hour by this strategy, which refuses nearly all.
    Refused(Strategy),
}

/// The number of prefixes in [`Limits::ManyOverrides`] and [`Limits::ManyListed`].
pub(crate) const OVERRIDES: u32 = 100_000;

/// The number of addresses that [`Limits::ManyBans`] bans.
pub(crate) const BANS: u32 = 500_000;

impl Limits {
    const fn count(self) -> u32 {
        match self {
            Self::Address
            | Self::ManyOverrides
            | Self::ManyListed
            | Self::ManyBans
            | Self::Sieve
            | Self::SharedLimit
            | Self::Window(_)
            | Self::MovingWindow(_)
            | Self::Refused(_) => 1,
            Self::AddressTwice
            | Self::AddressAndRange
            | Self::AddressAndTotal
            | Self::Standing(_) => 2,
            Self::Four => 4,
        }
    }

    /// Returns the configuration. The first limit is the one of `terms`. The others never refuse, so packets that pass
    /// the first are charged to them, too: the most work possible.
    pub(crate) fn configuration(self, terms: &Terms) -> String {
        const PACKETS: u64 = 1_000_000_000;
        const BYTES: u64 = 10 * PACKETS;
        let limit = |name: &str, rate: u64| {
            format!("  {name}: {{burst: {rate}, count: {rate}, period: 1s}}\n")
        };
        let Terms {
            per_second,
            overridden,
            ..
        } = *terms;
        let first = match self {
            Self::Window(strategy) => windows::second(strategy, per_second),
            Self::MovingWindow(count) => windows::moving(count, terms.sources_log2),
            Self::Refused(strategy) => windows::refusing(strategy),
            // This node's minimum share is the rate of the terms, unless the whole is too high then.
            Self::SharedLimit => limit("PacketsPerIPAddress", (40 * per_second).min(PACKETS)),
            _ => limit("PacketsPerIPAddress", per_second),
        };
        let mut text = format!("limits:\n{first}");
        if matches!(self, Self::AddressTwice | Self::Four) {
            text += &limit("BytesPerIPAddress", BYTES);
        }
        if matches!(self, Self::AddressAndRange | Self::Four) {
            text += &limit("PacketsPerIPv4Range", PACKETS);
            text += &limit("PacketsPerIPv6Range", PACKETS);
        }
        if self == Self::Four {
            text += &limit("BytesPerIPv4Range", BYTES);
            text += &limit("BytesPerIPv6Range", BYTES);
        }
        match self {
            Self::AddressAndTotal => text += &standing::without(PACKETS),
            Self::Standing(situation) => text += &situation.limits(PACKETS),
            _ => {}
        }
        if self == Self::ManyOverrides || overridden.is_some() {
            text += "overrides:\n";
        }
        if let Some(other) = overridden {
            let Override {
                address,
                per_minute,
            } = other;
            let _ = writeln!(
                text,
                "  - PacketsPerIPAddress: {{burst: 1, count: {per_minute}, period: 1m, ids: [{address}]}}"
            );
        }
        if self == Self::ManyOverrides {
            let rate = (2 * per_second).min(PACKETS / 2);
            let _ = write!(
                text,
                "  - PacketsPerIPAddress:\n      burst: {rate}\n      count: {rate}\n      period: 1s\n      ids:\n"
            );
            for prefix in prefixes() {
                let _ = writeln!(text, "        - {prefix}/28");
            }
        }
        if self == Self::Sieve {
            text += "ip-rep: [{name: all, size: 15, pressure: {packets-per-second: 1}}]\n";
        }
        if self == Self::ManyListed {
            text += "block: listed\nlists:\n  - name: listed\n    cidr:\n";
            // Leave out the first prefix, which has the only source of the smallest flood. In a large flood, one source
            // in 168 is listed.
            for prefix in prefixes().skip(1) {
                let _ = writeln!(text, "      - {prefix}/28");
            }
        }
        text
    }
}

/// Bans addresses that send no flood.
fn ban(bans: &BanMaps) -> Result<()> {
    const FIRST: u32 = 0x2000_0000;
    let ban = Ban {
        until_ns: FOREVER,
        since_ns: 0,
        times: 1,
        limit: Ban::BY_HAND,
        text: BanText::EMPTY,
    };
    for address in (FIRST..).take(BANS as usize) {
        let address = Address::v4(address.to_be_bytes());
        bans.insert(BanKey::new(&address, 32), ban)?;
    }
    Ok(())
}

/// Returns prefixes of 16 addresses all over the flood's range.
fn prefixes() -> impl Iterator<Item = Ipv4Addr> {
    const FIRST: u32 = 0x1000_0000;
    const STEP: u32 = (1 << 28) / OVERRIDES / 16 * 16;
    (0..OVERRIDES).map(|number| Ipv4Addr::from(FIRST + number * STEP))
}

/// Loads it with its tables.
pub(super) fn load(
    store: Store,
    limits: Limits,
    terms: &Terms,
) -> Result<(Instance, LimiterMemory)> {
    let text = limits.configuration(terms);
    let mut config = config::parse(&text, "bench").map_err(|errors| anyhow!("{errors}"))?;
    if limits == Limits::SharedLimit {
        // A section `fleet` would need a key.
        config.policy.limits[0].fleet_nodes = Some(2);
    }
    let policy = CompiledPolicy::new(&config.policy, possible_cpus())?;
    let buckets = Buckets {
        store,
        capacity: ROOM * limits.count(),
        ..Buckets::default()
    };
    let settings = Settings::new(buckets, config.offenders, LogLevel::Off)?.sized_for(&policy);
    let measured = terms.sink != Sink::Nothing || terms.draw;
    // Without drawing and dropping, use the daemon's object.
    let object = if measured { objects::LIMITER } else { OBJECT };
    let mut instance = Instance::load_build(object, &policy, 0, settings, ClockSource::Kernel)?;
    if measured {
        let drawing = Drawing {
            layout: terms.draw.then_some(terms.layout),
            sources_log2: terms.sources_log2,
            sink: terms.sink,
        };
        drawing.apply(instance.ebpf_mut())?;
    }
    if limits == Limits::ManyBans {
        ban(instance.take_source_maps(settings)?.bans())?;
    }
    if limits == Limits::Sieve {
        // A permanent pressure that scores every address and rejects none.
        let source_maps = instance.take_source_maps(settings)?;
        let pressure = Pressure::new(0, u64::MAX);
        source_maps
            .sieves()
            .pressures()
            .set_pressure(pressure_of_sieve(0), pressure)?;
    }
    if limits == Limits::Standing(Situation::ShortOfRoom) {
        let features = *instance.features();
        let mut source_maps = instance.take_source_maps(settings)?;
        standing::introduce(source_maps.standing_mut(), &features, terms)?;
    }
    let kept = LimiterMemory::take(&mut instance, settings)?;
    Ok((instance, kept))
}

#[cfg(test)]
mod tests {
    use bench_common::Layout;

    use super::*;

    const TERMS: Terms = Terms {
        layout: Layout::V4,
        sources_log2: 0,
        per_second: 1000,
        overridden: None,
        sink: Sink::Nothing,
        draw: false,
    };

    fn check(limits: Limits, terms: &Terms) {
        let text = limits.configuration(terms);
        let config = config::parse(&text, "bench");
        let config = config.unwrap_or_else(|errors| panic!("{limits:?}: {errors}"));
        CompiledPolicy::new(&config.policy, possible_cpus()).unwrap();
    }

    /// Configurations without an override are tested where each contender is loaded.
    #[test]
    fn every_configuration_with_an_override_is_one() {
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let overridden = Some(Override {
            address,
            per_minute: 12,
        });
        for limits in [
            Limits::Address,
            Limits::AddressTwice,
            Limits::AddressAndRange,
            Limits::Four,
            Limits::ManyOverrides,
            Limits::ManyListed,
            Limits::ManyBans,
            Limits::Sieve,
            Limits::SharedLimit,
            Limits::AddressAndTotal,
            Limits::Standing(Situation::Calm),
            Limits::Standing(Situation::ShortOfRoom),
            Limits::Standing(Situation::Spent),
        ] {
            check(
                limits,
                &Terms {
                    overridden,
                    ..TERMS
                },
            );
        }
    }

    #[test]
    fn those_of_strategies_are_in_any_flood() {
        let [gcra, windows @ ..] = Strategy::ALL;
        let limits = windows
            .into_iter()
            .flat_map(|strategy| [Limits::Window(strategy), Limits::Refused(strategy)])
            .filter(|limits| *limits != Limits::Window(Strategy::MovingWindow))
            .chain([10, 128].map(Limits::MovingWindow))
            .chain([Limits::Refused(gcra)]);
        for limits in limits {
            for (sources_log2, per_second) in [(0, 1_000), (24, 1_000_000_000)] {
                check(
                    limits,
                    &Terms {
                        sources_log2,
                        per_second,
                        ..TERMS
                    },
                );
            }
        }
    }
}
