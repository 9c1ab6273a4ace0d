//! Locks in the table of buckets that nobody holds any more, and a process that is killed while it
//! changes buckets.
//!
//! Daemons used to change the table themselves. One that was killed between two instructions left a
//! way locked, and its owner was dropped for ever.

use std::{net::Ipv4Addr, thread, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use aya::maps::{Array, Map, MapData, loaded_maps};
use limiter_common::{
    limit::BUILT_IN,
    owner::BucketKey,
    reason::Reason,
    strategy::Budget,
    table::{EMPTY, LOCKED, WAYS},
};
use limiter_datapath::{
    kernel::{Clocking, Instance, LogLevel, Settings, SharedMaps, possible_cpus},
    state::{Debts, StoredDebts},
};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Limit, Policy, Rate, Units},
};
use testbed::Frame;

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1_000 * SECOND;

/// An element of the table: names at even places, states at odd ones.
type RawLine = [u64; 2 * WAYS];

/// A program with a small table of its own.
struct Program {
    instance: Instance,
    maps: SharedMaps,
    table: Array<MapData, RawLine>,
    budget: Budget,
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
    /// `lines` are those of no other table of this process: by that the map is found.
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
        let mut instance = Instance::load(&tables, 0, settings, Clocking::Test)?;
        let maps = instance.take_maps(settings)?;
        instance.set_clock(NOW)?;
        let mut ids = tables_of(lines);
        ids.retain(|id| !before.contains(id));
        ensure!(ids.len() == 1, "which is it of {ids:?}?");
        let map = Map::Array(MapData::from_id(ids[0])?);
        Ok(Self {
            instance,
            maps,
            table: map.try_into()?,
            budget: tables.rates[0],
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

    /// Where a source's bucket is.
    fn place(&self, source: u32) -> Result<(u32, usize)> {
        let bucket = self.maps.bucket(&Self::key(source))?.context("a bucket")?;
        for index in 0..self.table.len() {
            let line = self.line(index)?;
            for way in 0..WAYS {
                if line[2 * way] != EMPTY && line[2 * way + 1] == bucket.state {
                    return Ok((index, way));
                }
            }
        }
        bail!("it is in no line")
    }

    /// Writes a way, as a process would have left it that was killed.
    fn leave(&mut self, (index, way): (u32, usize), name: u64, state: u64) -> Result<()> {
        let mut line = self.line(index)?;
        (line[2 * way], line[2 * way + 1]) = (name, state);
        self.table.set(index, line, 0)?;
        Ok(())
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
        // Those of other tests come and go meanwhile.
        let Ok(map) = map else { continue };
        if map.name_as_str() == Some("TABLE") && map.max_entries() == lines {
            ids.push(map.id());
        }
    }
    ids
}

/// A step of a change in which a way is locked, and the name that it has then.
#[derive(Clone, Copy, Debug)]
enum Killed {
    /// A bucket was about to be put in, in place of this one; or this one was put in, but for its
    /// state.
    PuttingIn,
    /// This one was about to count in another unit.
    BeforeItExchanged,
    /// It counts there, but for its state.
    AfterItExchanged,
    /// This one was put in, and taken out again, since another CPU had put it in elsewhere.
    Withdrawing,
}

const STEPS: [Killed; 4] = [
    Killed::PuttingIn,
    Killed::Withdrawing,
    Killed::BeforeItExchanged,
    Killed::AfterItExchanged,
];

impl Killed {
    fn name(self, name: u64) -> u64 {
        match self {
            Self::PuttingIn => name,
            Self::Withdrawing => EMPTY,
            // Of the unit before, or the one after.
            Self::BeforeItExchanged => name ^ 1,
            Self::AfterItExchanged => name ^ 2,
        }
    }
}

#[test]
fn reset_frees_what_a_killed_daemon_has_left_locked() -> Result<()> {
    const SOURCE: u32 = 1;
    let mut program = Program::new(1 << 9)?;
    for step in STEPS {
        for all in [false, true] {
            assert_eq!(program.send(SOURCE, 3)?, 3);
            let place = program.place(SOURCE)?;
            let name = program.line(place.0)?[2 * place.1];
            program.leave(place, step.name(name), LOCKED)?;
            if !matches!(step, Killed::Withdrawing) {
                assert_eq!(program.send(SOURCE, 5)?, 0, "{step:?}: it is locked");
            }
            assert_eq!(program.locks()?, 1);

            let (buckets, units) = (program.maps.buckets(), &program.units);
            if all {
                buckets.reset_all(None, units, NOW)?;
            } else {
                buckets.give_back(&Program::key(SOURCE), &program.budget, None, units, NOW)?;
            }
            assert_eq!(program.locks()?, 0, "{step:?}");
            assert_eq!(program.send(SOURCE, 5)?, 5, "{step:?}, all: {all}");
            let bucket = program.maps.bucket(&Program::key(SOURCE))?;
            let state = bucket.context("a bucket")?.state;
            assert_eq!(state - NOW, 5 * SECOND / 1_000, "what was spent since");
            program
                .maps
                .buckets()
                .reset_all(None, &program.units, NOW)?;
        }
    }
    Ok(())
}

/// What is locked and let go by packets all the time is not taken for abandoned.
#[test]
fn no_lock_is_freed_that_somebody_holds() -> Result<()> {
    const SOURCES: u32 = 24;
    // So small that each packet puts its bucket in anew, in place of another in debt.
    let program = &Program::new(1 << 1)?;
    let end = &std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| -> Result<()> {
        let flood = scope.spawn(move || -> Result<()> {
            while !end.load(std::sync::atomic::Ordering::SeqCst) {
                for source in 1..=SOURCES {
                    program.send(source, 50)?;
                }
            }
            Ok(())
        });
        for _ in 0..500 {
            assert_eq!(program.maps.buckets().free_abandoned_locks()?, 0);
        }
        end.store(true, std::sync::atomic::Ordering::SeqCst);
        flood.join().expect("the thread does not panic")
    })?;
    assert_eq!(program.locks()?, 0);
    Ok(())
}

/// A process is killed again and again while it puts buckets in, exchanges and refunds them.
#[test]
fn a_process_that_is_killed_leaves_no_lock() -> Result<()> {
    const SOURCES: u32 = 32;
    const KILLS: u64 = 300;
    let program = Program::new(1 << 3)?;
    for source in 1..=SOURCES {
        program.send(source, 1)?;
    }
    let buckets = program.maps.buckets();
    // Twice as many as there is room for: each is put in anew.
    let mut debts = buckets.capture(&program.units, NOW)?;
    more(&mut debts);
    for round in 0..KILLS {
        // SAFETY: the child calls what this thread could call, and never returns.
        let child = unsafe { libc::fork() };
        ensure!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            loop {
                let _ = buckets.restore(&debts, &program.units, NOW, 0);
                for source in 1..=SOURCES {
                    let key = Program::key(source);
                    let (budget, units) = (&program.budget, &program.units);
                    let _ = buckets.give_back(&key, budget, Some(1), units, NOW);
                }
            }
        }
        // Later by a little each time: at any step.
        thread::sleep(Duration::from_micros(500 + 37 * (round % 97)));
        // SAFETY: the child is this process's own, and not waited for yet.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert_eq!(program.locks()?, 0, "after {round} kills");
    }
    Ok(())
}

/// Adds the debts of as many other owners.
fn more(debts: &mut Debts) {
    if let StoredDebts::Table(table) = &mut debts.stored {
        let others: Vec<_> = table.debts.clone();
        table.debts.extend(others.into_iter().map(|mut debt| {
            debt.name ^= 1 << 60;
            debt
        }));
    }
}

/// The process that changes buckets through the kernel cannot write to the table itself.
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

/// The length of a mapping, of its line in /proc.
fn length(line: &str) -> Option<u64> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(end)? - number(start)?)
}
