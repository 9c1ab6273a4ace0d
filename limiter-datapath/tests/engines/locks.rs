//! A process that is killed while it changes buckets. If it left a bucket locked, the bucket's
//! key would be dropped for ever.

use std::{net::Ipv4Addr, thread, time::Duration};

use anyhow::{Result, ensure};
use aya::maps::{Array, Map, MapData, loaded_maps};
use limiter_common::{
    key::BucketKey,
    limit::BUILT_IN,
    reason::Reason,
    strategy::Parameters,
    table::{LOCKED, WAYS},
};
use limiter_datapath::{
    kernel::{ClockSource, Instance, LogLevel, Settings, SharedMaps, possible_cpus},
    state::{Debts, StoredDebts},
};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Limit, Policy, Rate, Units},
};
use testbed::Frame;

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1_000 * SECOND;

/// An element of the table: fingerprints have even indices, states odd ones.
type RawLine = [u64; 2 * WAYS];

/// A program with its own small table.
struct Program {
    instance: Instance,
    maps: SharedMaps,
    table: Array<MapData, RawLine>,
    parameters: Parameters,
    units: Units,
}

fn rate(count: u64) -> Rate {
    Rate {
        burst: 1 << 30,
        count,
        period_ns: SECOND,
    }
}

impl Program {
    /// Loads the program. `lines` identifies the map, so no other table of this process may have as
    /// many.
    fn new(lines: u32) -> Result<Self> {
        let limit = Limit::of_built_in(&BUILT_IN[0], Some(rate(1_000)));
        let tables = CompiledPolicy::new(&Policy::from(vec![limit]), possible_cpus())?;
        let buckets = Buckets {
            store: Store::Table,
            capacity: 4 * lines,
            ..Buckets::default()
        };
        let settings = Settings::new(buckets, Offenders::OFF, LogLevel::Off)?;
        let before = tables_of(lines);
        let mut instance = Instance::load(&tables, 0, settings, ClockSource::Test)?;
        let maps = instance.take_maps(settings)?;
        instance.set_clock(NOW)?;
        let mut ids = tables_of(lines);
        ids.retain(|id| !before.contains(id));
        ensure!(ids.len() == 1, "ambiguous tables: {ids:?}");
        let map = Map::Array(MapData::from_id(ids[0])?);
        Ok(Self {
            instance,
            maps,
            table: map.try_into()?,
            parameters: tables.rates[0],
            units: tables.units,
        })
    }

    fn key(source: u32) -> BucketKey {
        let address = std::net::IpAddr::from(Ipv4Addr::from(0x0a00_0000 | source));
        BucketKey::of_source(BUILT_IN[0].id, address.into(), 32)
    }

    /// Sends packets from a source; returns how many pass.
    fn send(&self, source: u32, packets: u32) -> Result<u64> {
        let passed = || self.maps.reason_traffic(0, Reason::WithinLimits);
        let before = passed()?.packets;
        let address = Ipv4Addr::from(0x0a00_0000 | source).into();
        let frame = Frame::new(address, "10.255.0.1".parse()?).udp(1, 2, b"x")?;
        self.instance.hammer(&frame, packets)?;
        Ok(passed()?.packets - before)
    }

    fn line(&self, index: u32) -> Result<RawLine> {
        Ok(self.table.get(&index, 0)?)
    }

    fn locks(&self) -> Result<usize> {
        let mut locks = 0;
        for index in 0..self.table.len() {
            let line = self.line(index)?;
            locks += (0..WAYS).filter(|way| line[2 * way + 1] == LOCKED).count();
        }
        Ok(locks)
    }
}

fn tables_of(lines: u32) -> Vec<u32> {
    let mut ids = Vec::new();
    for map in loaded_maps() {
        // Maps of other tests may vanish meanwhile.
        let Ok(map) = map else { continue };
        if map.name_as_str() == Some("TABLE") && map.max_entries() == lines {
            ids.push(map.id());
        }
    }
    ids
}

/// A process is killed again and again while it inserts, exchanges and refunds buckets.
#[test]
fn a_process_that_is_killed_leaves_no_lock() -> Result<()> {
    const SOURCES: u32 = 32;
    const KILLS: u64 = 100;
    let program = Program::new(1 << 3)?;
    for source in 1..=SOURCES {
        program.send(source, 1)?;
    }
    let buckets = program.maps.buckets();
    // Twice as many debts as fit, so that each is inserted again.
    let mut debts = buckets.capture(&program.units, NOW)?;
    more(&mut debts);
    for round in 0..KILLS {
        // SAFETY: the child calls only functions that this thread could call, and never returns.
        let child = unsafe { libc::fork() };
        ensure!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            loop {
                let _ = buckets.restore(&debts, &program.units, NOW, 0);
                for source in 1..=SOURCES {
                    let key = Program::key(source);
                    let (parameters, units) = (&program.parameters, &program.units);
                    let _ = buckets.give_back(&key, parameters, Some(1), units, NOW);
                }
            }
        }
        // A little later each time, to hit every step.
        thread::sleep(Duration::from_micros(500 + 37 * (round % 97)));
        // SAFETY: the child is this process's own, and not reaped yet.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert_eq!(program.locks()?, 0, "after {round} kills");
    }
    Ok(())
}

/// Adds the debts of as many other keys.
fn more(debts: &mut Debts) {
    if let StoredDebts::Table(table) = &mut debts.stored {
        let others: Vec<_> = table.debts.clone();
        table.debts.extend(others.into_iter().map(|mut debt| {
            debt.name ^= 1 << 60;
            debt
        }));
    }
}

/// The process changes buckets through the kernel, and cannot write to the table itself.
#[test]
fn the_table_is_mapped_to_read_alone() -> Result<()> {
    let program = Program::new(1 << 10)?;
    assert_eq!(program.send(1, 1)?, 1);
    let maps = std::fs::read_to_string("/proc/self/smaps")?;
    let bpf: Vec<_> = maps
        .lines()
        .filter(|line| line.contains("bpf-map"))
        .collect();
    assert!(!bpf.is_empty(), "{maps}");
    let size = 64 << 10;
    let of_table: Vec<_> = bpf
        .iter()
        .filter(|line| length(line) == Some(size))
        .collect();
    assert!(!of_table.is_empty(), "{bpf:?}");
    for line in of_table {
        assert!(line.contains(" r--s "), "{line}");
    }
    Ok(())
}

/// The length of a mapping, from its line in /proc.
fn length(line: &str) -> Option<u64> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(end)? - number(start)?)
}
