//! The most that a fleet may send to a node.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    net::Ipv4Addr,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Result, ensure};
use limiter_fleet::{
    Kind,
    bans::{BanId, BanState, BanUpdate},
    replicated::Value as _,
    sources::Source,
};

use super::{entry, envelope, stamp};
use crate::peers::{
    fleet::{
        configuration,
        five::many::{LONGEST, memory},
        start, status,
        store::{KEY, Store},
    },
    program, succeed,
};

/// The table has its default size.
pub(in super::super) const LIMITS: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s, reserve: {unknown: 10%}}";

/// The known sources of five nodes.
const MOST_RECEIVED: u32 = 500_000;

const HOLDS: Duration = Duration::from_hours(10);

/// The settings that a node needs for so many bans.
const ROOM: &str = "bans: {capacity: 600000}";

/// Measures a node's memory with the most known sources and bans of other nodes.
#[test]
#[ignore = "takes minutes: it is for measuring"]
fn half_a_million_sources_and_bans() -> Result<()> {
    let store = Store::start(1)?;
    let text = configuration(&store, 1, ("a", &["a"]), LIMITS, "");
    let text = format!("{text}{ROOM}\n");
    let node = start(&store, 1, &text)?;
    thread::sleep(Duration::from_secs(10));
    println!("nothing is received: {}", memory(&node)?);
    ensure!(node.stop()?.success());
    for (what, has_bans) in [("known sources", false), ("known sources and bans", true)] {
        let bans = if has_bans { BanState::MOST } else { 0 };
        fill(&store, MOST_RECEIVED, u32::try_from(bans)?)?;
        let begun = Instant::now();
        let node = start(&store, 1, &text)?;
        println!("{what}: enforces after {:?}", begun.elapsed());
        loop {
            let status = status(&node)?;
            if status["sources"]["received"] == MOST_RECEIVED && status["received"] == bans {
                ensure!(
                    status["refused"]
                        .as_object()
                        .is_some_and(serde_json::Map::is_empty),
                    "{status:#}"
                );
                break;
            }
            ensure!(begun.elapsed() < LONGEST, "{status:#}\n{}", node.log()?);
            thread::sleep(Duration::from_millis(200));
        }
        println!(
            "{what}: knows all after {:?}, {}",
            begun.elapsed(),
            memory(&node)?
        );
        // Until the state is saved.
        thread::sleep(Duration::from_secs(65));
        println!("{what}, after a minute: {}", memory(&node)?);
        ensure!(node.stop()?.success());
    }
    Ok(())
}

/// Fills the store with so many sources and bans of other nodes.
pub(in super::super) fn fill(store: &Store, sources: u32, bans: u32) -> Result<()> {
    let until = SystemTime::now() + HOLDS;
    let file = store.directory().join("commands");
    let mut commands = BufWriter::new(File::create(&file)?);
    let mut keep = |hash: &str, field: &str, value: &[u8]| -> Result<()> {
        let arguments = [b"HSET", hash.as_bytes(), field.as_bytes(), value];
        write!(commands, "*4\r\n")?;
        for argument in arguments {
            write!(commands, "${}\r\n", argument.len())?;
            commands.write_all(argument)?;
            commands.write_all(b"\r\n")?;
        }
        Ok(())
    };
    let of_sources = envelope(Kind::Sources, KEY)?;
    for number in 0..sources {
        let source = Source::V4((0x1400_0000 + number).to_be_bytes());
        let (field, message) = entry(&of_sources, &format!("n{}", number % 5), source, until)?;
        keep(super::HASH, &field, &message)?;
    }
    let of_bans = envelope(Kind::Bans, KEY)?;
    let stamp = stamp("n0")?;
    let until = until.duration_since(SystemTime::UNIX_EPOCH)?;
    let until_ms = u64::try_from(until.as_millis())?;
    for number in 0..bans {
        let prefix = Ipv4Addr::from(0x0a00_0000 + number);
        let update = BanUpdate {
            key: BanId {
                prefix: format!("{prefix}/32").parse()?,
                origin: "operator".into(),
            },
            stamp: stamp.clone(),
            value: BanState::Banned {
                until_ms: Some(until_ms),
                reason: "a test".into(),
                limit: None,
            },
            ends_ms: until_ms,
        };
        let field = format!("{prefix}/32 operator");
        keep("limiter:{edge}:bans", &field, &of_bans.write(&vec![update]))?;
    }
    commands.flush()?;
    let mut pipe = program::command(store.namespace(), "redis-cli")?;
    let reported = succeed(pipe.arg("--pipe").stdin(File::open(&file)?))?;
    println!(
        "{} bytes in commands: {reported}",
        fs::metadata(&file)?.len()
    );
    ensure!(reported.contains("errors: 0"), "{reported}");
    Ok(())
}
