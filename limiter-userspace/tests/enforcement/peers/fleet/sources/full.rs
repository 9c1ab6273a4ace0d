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
    Envelope, Key, Keys, Kind, Name,
    bans::{BanId, BanState, BanUpdate},
    replicated::{Stamp, Value as _},
    sources::{Proof, Source, SourceKey, SourceUpdate},
};

use super::many::LIMITS;
use crate::peers::{
    fleet::{
        configuration,
        five::many::{LONGEST, memory},
        start, status,
        store::{KEY, Store},
    },
    program, succeed,
};

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
        fill(&store, has_bans)?;
        let begun = Instant::now();
        let node = start(&store, 1, &text)?;
        println!("{what}: enforces after {:?}", begun.elapsed());
        loop {
            let status = status(&node)?;
            let bans = if has_bans { BanState::MOST } else { 0 };
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

/// Fills the store with entries of many nodes.
fn fill(store: &Store, has_bans: bool) -> Result<()> {
    let keys = Keys {
        current: Key::new(KEY.as_bytes()).map_err(anyhow::Error::msg)?,
        other: None,
    };
    let name = |text: &str| Name::try_from(text).map_err(anyhow::Error::msg);
    let fleet = name("edge")?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let (ms, until) = (u64::try_from(now.as_millis())?, now + HOLDS);
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
    let envelope = Envelope::new(Kind::Sources, &fleet, &keys);
    for number in 0..MOST_RECEIVED {
        let node = name(&format!("n{}", number % 5))?;
        let update = SourceUpdate {
            key: SourceKey {
                source: Source::V4((0x1400_0000 + number).to_be_bytes()),
                node: node.clone(),
            },
            stamp: Stamp { ms, node },
            value: Proof {
                since_s: 0,
                until_s: until.as_secs(),
                is_fresh: false,
                ipv6_prefix: 64,
            },
            ends_ms: until.as_secs() * 1_000,
        };
        let field = update.key.to_string();
        keep(super::HASH, &field, &envelope.write(&vec![update]))?;
    }
    let envelope = Envelope::new(Kind::Bans, &fleet, &keys);
    let banning = name("n0")?;
    let until_ms = u64::try_from(until.as_millis())?;
    for number in 0..u32::try_from(BanState::MOST)? {
        if !has_bans {
            break;
        }
        let prefix = Ipv4Addr::from(0x0a00_0000 + number);
        let update = BanUpdate {
            key: BanId {
                prefix: format!("{prefix}/32").parse()?,
                origin: "operator".into(),
            },
            stamp: Stamp {
                ms,
                node: banning.clone(),
            },
            value: BanState::Banned {
                until_ms: Some(until_ms),
                reason: "a test".into(),
                limit: None,
            },
            ends_ms: until_ms,
        };
        let field = format!("{prefix}/32 operator");
        keep(
            "limiter:{edge}:bans",
            &field,
            &envelope.write(&vec![update]),
        )?;
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
