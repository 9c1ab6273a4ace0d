//! The filter of sources with a standing has every source that has one, and forgets the others.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

use anyhow::{Result, ensure};
use limiter_common::{
    address::Address,
    standing::{Event, Settings, SourceId, Standing},
};
use limiter_datapath::kernel::{KnownSources, monotonic_now};
use testbed::Namespace;

use super::scene::Scene;

const HOUR: u64 = 3_600_000_000_000;

fn source(number: u32) -> SourceId {
    let address = Address::v4((0x0a00_0000 + number).to_be_bytes());
    SourceId::new(&Settings::NONE, &address)
}

fn trust(known: &KnownSources<'_>, source: SourceId) -> Result<()> {
    let until_ns = monotonic_now() + HOUR;
    known.record_event(source, Event::Trust { until_ns })?;
    Ok(())
}

#[test]
fn it_forgets_sources_without_a_standing() -> Result<()> {
    let scene = Scene::new(&Namespace::new()?, "")?;
    let known = scene.known()?;
    let [stays, leaves, comes] = [1, 2, 3].map(source);
    // A visit gives no standing.
    known.record_event(comes, Event::Visit)?;
    ensure!(!known.may_have_standing(comes));
    for source in [stays, leaves] {
        ensure!(!known.may_have_standing(source));
        trust(&known, source)?;
        ensure!(known.may_have_standing(source));
    }
    known.record_event(leaves, Event::Untrust)?;
    ensure!(known.may_have_standing(leaves), "forgotten later");
    // In each half.
    for _ in 0..3 {
        known.forget_in_filter()?;
        ensure!(known.may_have_standing(stays));
        ensure!(!known.may_have_standing(leaves));
        ensure!(!known.may_have_standing(comes));
    }
    trust(&known, leaves)?;
    ensure!(known.may_have_standing(leaves));
    Ok(())
}

/// While sources gain a standing, also while the filter forgets others, it has each of them.
#[test]
fn it_has_every_source_while_it_forgets() -> Result<()> {
    const SOURCES: u32 = 3_000;
    let scene = Scene::new(&Namespace::new()?, "capacity: 20000")?;
    let known = scene.known()?;
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let forgetting = scope.spawn(|| -> Result<u32> {
            let mut times = 0;
            while !ended.load(SeqCst) {
                known.forget_in_filter()?;
                times += 1;
            }
            Ok(times)
        });
        let gained = (0..SOURCES).try_for_each(|number| {
            trust(&known, source(number))?;
            for earlier in [number, number / 2, number.saturating_sub(7)] {
                ensure!(known.may_have_standing(source(earlier)), "{earlier}");
            }
            Ok(())
        });
        ended.store(true, SeqCst);
        let times = forgetting.join().expect("no panic")?;
        gained?;
        ensure!(times > 1, "it forgot {times} times beside");
        Ok(())
    })?;
    let at = known.standing_context()?;
    let of_standing = known
        .all()
        .filter(|(_, record)| record.standing(&at) != Standing::Unknown);
    let (sources, lacking): (Vec<_>, Vec<_>) = of_standing
        .map(|(source, _)| source)
        .partition(|source| known.may_have_standing(*source));
    ensure!(lacking.is_empty(), "{lacking:?}");
    ensure!(sources.len() == SOURCES as usize, "{}", sources.len());
    Ok(())
}
