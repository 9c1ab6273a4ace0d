//! A client with its own network stack that tries to make the server see another name than the limiter counts.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{HashMap, Map, MapData};
use testbed::{Limiter, PinDirectory, SERVER_INTERFACE};

use super::{
    binary,
    own_client::{By, Connection, policy, reason, server},
    start,
};
use crate::{pair, wait};

/// Longer than the daemon takes to read a name.
const SOON: Duration = Duration::from_millis(300);

/// How many segments of a client must be dropped before the test looks for a response: the client keeps retransmitting.
const DROPPED: u64 = 3;

fn named(limiter: &Limiter) -> Result<u64> {
    let status = limiter.status()?;
    let named = status["server_names"]["named"].as_u64();
    named.with_context(|| format!("no count in {status:#}"))
}

fn contradicted(limiter: &Limiter) -> Result<u64> {
    reason(limiter, "name_contradicted")
}

#[test]
fn no_other_name_reaches_the_server_than_the_one_that_was_read() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for (mode, until_known) in [("native", "hold"), ("native", "pass"), ("generic", "hold")] {
        let limiter = start(&pair, &policy(until_known), mode)?;
        for by in [By::Http, By::Tls] {
            let [one, other] = ["a.example", "b.example"].map(|name| by.ask(name));
            // Held data does not reach the server. Data that passes must make the server drop it: it acknowledges
            // unsent bytes.
            let ahead = until_known == "pass";
            let (before, names) = (contradicted(&limiter)?, named(&limiter)?);
            let mut honest = Connection::new(&pair, by)?;
            honest.forge(0, &other, ahead)?;
            wait(|| Ok(named(&limiter)? > names))?;
            ensure!(honest.is_answered(&other)?, "{mode} {until_known} {by:?}");
            ensure!(contradicted(&limiter)? == before, "{by:?}");
            let mut client = Connection::new(&pair, by)?;
            client.forge(0, &one, ahead)?;
            wait(|| Ok(named(&limiter)? > names + 1))?;
            client.ask(&other)?;
            wait(|| Ok(contradicted(&limiter)? >= before + DROPPED))?;
            ensure!(!client.has_response()?, "{mode} {until_known} {by:?}");
        }
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Segments may reach the server before the name is read, but none after two different versions of a byte.
#[test]
fn a_connection_of_two_names_is_over() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for until_known in ["pass", "hold"] {
        let limiter = start(&pair, &policy(until_known), "native")?;
        let [one, other] = ["a.example", "b.example"].map(|name| By::Http.ask(name));
        let client = Connection::new(&pair, By::Http)?;
        // The names differ before this position; their ends come after it.
        let middle = other.len() - 10;
        client.forge(0, &one[..middle], true)?;
        client.forge(0, &other[..middle], false)?;
        thread::sleep(SOON);
        ensure!(contradicted(&limiter)? == 0, "{until_known}");
        wait(|| {
            client.forge(middle, &other[middle..], false)?;
            Ok(contradicted(&limiter)? > 0)
        })
        .context(until_known)?;
        let status = limiter.status()?;
        let counted = status["server_names"]["nameless"]["contradictory"].as_u64();
        ensure!(counted == Some(1), "{status:#}");
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Deletes all first bytes that the programs remember, as an eviction by many other connections would.
fn forget(pins: &PinDirectory) -> Result<()> {
    let files = pins.files()?;
    let file = files.iter().find(|file| file.ends_with("FIRST_BYTES_READ"));
    let map = Map::LruHashMap(MapData::from_pin(file.context("no map")?)?);
    let mut bytes: HashMap<_, [u8; 40], [u8; 4096]> = map.try_into()?;
    let all: Vec<_> = bytes.keys().collect::<Result<_, _>>()?;
    ensure!(!all.is_empty());
    for ends in all {
        bytes.remove(&ends)?;
    }
    Ok(())
}

/// If the programs have evicted the bytes, segments go to the daemon again: a client that sends the same bytes goes on,
/// any other client does not.
#[test]
fn what_the_programs_have_forgotten_is_compared_by_the_daemon() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    pair.compute_checksums()?;
    let pins = PinDirectory::new()?;
    let argument = pins.argument();
    let arguments = ["-i", SERVER_INTERFACE, "--mode", "native", &argument];
    let limiter = Limiter::start(binary(), &pair.server, &policy("hold"), &arguments)?;
    for by in [By::Http, By::Tls] {
        let [one, other] = ["a.example", "b.example"].map(|name| by.ask(name));
        for (first, is_answered) in [(&other, true), (&one, false)] {
            let mut client = Connection::new(&pair, by)?;
            client.forge(0, first, false)?;
            thread::sleep(SOON);
            forget(&pins)?;
            ensure!(client.is_answered(&other)? == is_answered, "{by:?}");
        }
    }
    ensure!(contradicted(&limiter)? > 0);
    ensure!(limiter.stop()?.success());
    Ok(())
}
