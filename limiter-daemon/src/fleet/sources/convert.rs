//! Converts records of the kernel's table to the fleet's proofs, and back.

use limiter_common::{
    address::{Address, Family},
    standing::{Kind, Record, Settings, SourceId, StandingContext, Tick},
};
use limiter_fleet::sources::{Proof, Source};

const NS_PER_S: u64 = 1_000_000_000;

pub(super) const fn source(id: SourceId) -> Source {
    match id.address().family {
        Family::V4 => {
            let [.., a, b, c, d] = id.0.to_be_bytes();
            Source::V4([a, b, c, d])
        }
        Family::V6 => Source::V6(id.0.to_be_bytes()),
    }
}

pub(super) const fn id(source: Source, settings: &Settings) -> SourceId {
    let address = match source {
        Source::V4(bytes) => Address::v4(bytes),
        Source::V6(half) => Address::v6(half, [0; 8]),
    };
    SourceId::new(settings, &address)
}

/// Returns whether this host has proven the source itself, or an operator trusts it here.
pub(super) const fn is_own(record: Record, at: &StandingContext<'_>) -> bool {
    matches!(record.current(at).kind(), Kind::Proven | Kind::Trusted)
}

/// Returns the proof in a record, at a time in seconds since 1970; `None`: it has none.
pub(super) fn proof(record: Record, at: &StandingContext<'_>, now_s: u64) -> Option<Proof> {
    if !is_own(record, at) {
        return None;
    }
    let ago_s = |kept| now_s.saturating_sub(seconds(at.now.since_kept(kept)));
    let is_vouched = matches!(record.kind(), Kind::Trusted);
    let (since_s, until_s) = if is_vouched {
        let left = record.since().wrapping_sub(at.now.kept()) & Tick(u32::MAX).kept();
        (0, now_s + seconds(left))
    } else {
        let remember_s = at.settings.remember_ns / NS_PER_S;
        (ago_s(record.since()), ago_s(record.last()) + remember_s)
    };
    Some(Proof {
        since_s,
        until_s,
        is_fresh: !is_vouched && record.is_fresh(),
        ipv6_prefix: ipv6_prefix(at.settings),
    })
}

/// Returns the number of leading bits of an IPv6 address that identify a source.
pub(super) fn ipv6_prefix(settings: &Settings) -> u8 {
    u8::try_from(settings.ipv6_prefix).unwrap_or(64)
}

/// Returns the record for another node's proof, at a time in seconds since 1970.
pub(super) fn record(proof: &Proof, at: &StandingContext<'_>, now_s: u64) -> Record {
    let age = ticks(now_s.saturating_sub(proof.since_s)).min(Record::LONGEST_TRUST);
    let left = ticks(proof.until_s.saturating_sub(now_s));
    let remembered = ticks(at.settings.remember_ns / NS_PER_S);
    let unseen = remembered.saturating_sub(left);
    let ago = |ticks| Tick(at.now.0.wrapping_sub(ticks));
    Record::new(Kind::Reported, proof.is_fresh, 0, ago(unseen), ago(age))
}

const fn seconds(ticks: u32) -> u64 {
    ((ticks as u64) << Tick::BITS) / NS_PER_S
}

fn ticks(seconds: u64) -> u32 {
    let ticks = seconds.saturating_mul(NS_PER_S) >> Tick::BITS;
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use limiter_common::standing::{Event, Shortage, Standing};

    use super::*;

    const NOW_S: u64 = 1_700_000_000;
    const DAY_S: u64 = 86_400;

    const SETTINGS: Settings = Settings {
        remember_ns: 30 * DAY_S * NS_PER_S,
        handshakes_prove: 1,
        fresh_ticks: 3_352,
        ..Settings::NONE
    };

    fn at(tick: u32) -> StandingContext<'static> {
        StandingContext {
            settings: &SETTINGS,
            shortage: Shortage::NONE,
            now: Tick(tick),
        }
    }

    /// Returns the standing on another host with a different clock, `later_s` seconds later.
    fn elsewhere(record: Record, now: u32, later_s: u64) -> Standing {
        let proof = proof(record, &at(now), NOW_S).unwrap();
        let clock = 0x9000_0000 + ticks(later_s);
        let received = super::record(&proof, &at(0x9000_0000), NOW_S);
        received.standing(&at(clock))
    }

    #[test]
    fn a_record_holds_elsewhere_for_as_long_as_here() {
        let now = 5_000_000;
        let proven = Record::NONE.after(Event::Handshake, &at(now - ticks(DAY_S)));
        assert_eq!(elsewhere(proven, now, 29 * DAY_S - 9), Standing::Proven);
        assert_eq!(elsewhere(proven, now, 29 * DAY_S + 9), Standing::Unknown);
        let until_ns = u64::from(now + ticks(DAY_S)) << Tick::BITS;
        let vouched = Record::NONE.after(Event::Trust { until_ns }, &at(now));
        assert_eq!(elsewhere(vouched, now, DAY_S - 9), Standing::Proven);
        assert_eq!(elsewhere(vouched, now, DAY_S + 9), Standing::Unknown);
        // Trust beyond the time that a source is remembered: the node sends another entry before that.
        let until_ns = u64::from(now + ticks(90 * DAY_S)) << Tick::BITS;
        let vouched = Record::NONE.after(Event::Trust { until_ns }, &at(now));
        assert_eq!(elsewhere(vouched, now, 30 * DAY_S - 9), Standing::Proven);
        assert_eq!(elsewhere(vouched, now, 30 * DAY_S + 9), Standing::Unknown);
    }

    #[test]
    fn a_fresh_source_is_fresh_elsewhere() {
        let now = 5_000_000;
        let short = StandingContext {
            shortage: Shortage::NONE.after_refusal(Tick(now)),
            ..at(now)
        };
        let fresh = Record::NONE.after(Event::Handshake, &short);
        assert_eq!(elsewhere(fresh, now, 9), Standing::Fresh);
        // Fresh by the time of its proof, in the other host's shortage.
        for (ago_s, expected) in [(3_000, Standing::Fresh), (4_000, Standing::Proven)] {
            let proven = Record::NONE.after(Event::Handshake, &at(now - ticks(ago_s)));
            let proof = proof(proven, &at(now), NOW_S).unwrap();
            assert_eq!(record(&proof, &at(now), NOW_S).standing(&short), expected);
        }
    }

    #[test]
    fn only_what_this_host_found_out_is_sent() {
        let now = Tick(5_000_000);
        for kind in [
            Kind::Nothing,
            Kind::Visited,
            Kind::Retried,
            Kind::Familiar,
            Kind::Reported,
        ] {
            let record = Record::new(kind, false, 9, now, now);
            assert_eq!(proof(record, &at(now.0), NOW_S), None, "{kind:?}");
        }
        // The record has ended.
        let record = Record::new(Kind::Proven, false, 9, now, now);
        let later = at(now.0 + ticks(31 * DAY_S));
        assert_eq!(proof(record, &later, NOW_S), None);
    }

    #[test]
    fn sources_are_the_same_elsewhere() {
        for text in ["192.0.2.7", "2001:db8:0:7::9"] {
            let address: IpAddr = text.parse().unwrap();
            let here = SourceId::new(&SETTINGS, &Address::from(address));
            assert_eq!(id(source(here), &SETTINGS), here, "{text}");
            assert_eq!(source(here).check(64), Ok(()), "{text}");
        }
    }
}
