//! A client with a network stack of its own, which would have its connection count by no name.

use std::{thread, time::Duration};

use anyhow::{Result, ensure};
use testbed::Limiter;

use super::{
    own_client::{By, Connection, policy, reason, server},
    server_names, start,
};
use crate::{pair, take_turn};

/// Longer than data is held while nobody reads its connection's name.
const LONG: Duration = Duration::from_millis(1500);

/// More segments than are read of a connection.
const MANY: usize = 20;

/// How a client hides the name that it asks for.
#[derive(Clone, Copy, Debug)]
enum Hides {
    /// In more segments than are read, at one moment.
    InPieces,
    /// The same, after the first byte and a pause.
    InPiecesLater,
    /// Behind segments that the server drops, since their checksums are wrong, and a pause.
    BehindDamaged,
    /// Behind the first byte, sent again and again, and a pause.
    BehindRepeated,
}

impl Hides {
    const ALL: [Self; 4] = [
        Self::InPieces,
        Self::InPiecesLater,
        Self::BehindDamaged,
        Self::BehindRepeated,
    ];

    /// Sends what hides the first bytes, and nearly all of these.
    fn send(self, client: &Connection<'_>, bytes: &[u8]) -> Result<()> {
        let pieces = |place| client.segments(place, &bytes[place..], bytes.len() / MANY, false);
        let first = || client.segments(0, &bytes[..1], 1, false);
        match self {
            Self::InPieces => client.send(&pieces(0)?),
            Self::InPiecesLater => {
                client.send(&first()?)?;
                thread::sleep(LONG);
                client.send(&pieces(1)?)
            }
            Self::BehindDamaged => {
                let mut damaged = first()?.concat();
                damaged[TCP_CHECKSUM] ^= 0x5a;
                client.send(&vec![damaged; MANY])?;
                thread::sleep(LONG);
                client.send(&pieces(0)?)
            }
            Self::BehindRepeated => {
                client.send(&vec![first()?.concat(); MANY])?;
                thread::sleep(LONG);
                client.send(&pieces(0)?)
            }
        }
    }
}

/// Behind the headers of Ethernet and IPv4.
const TCP_CHECKSUM: usize = 14 + 20 + 16;

/// Returns how many packets the limit has counted.
fn counted(limiter: &Limiter) -> Result<u64> {
    let [passed, dropped] = server_names::counted(limiter, "B")?;
    Ok(passed + dropped)
}

#[test]
fn nothing_reaches_the_server_from_whoever_hides_its_name() -> Result<()> {
    let _turn = take_turn();
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for mode in ["native", "generic"] {
        let limiter = start(&pair, &policy("hold"), mode)?;
        for by in [By::Http, By::Tls] {
            let bytes = by.ask("b.example");
            for hides in Hides::ALL {
                let mut client = Connection::new(&pair, by)?;
                hides.send(&client, &bytes)?;
                let is_answered = client.is_answered(&bytes)?;
                println!("{mode} {by:?} {hides:?}: answered {is_answered}");
                ensure!(!is_answered && counted(&limiter)? == 0);
            }
            ensure!(reason(&limiter, "name_awaited")? > 0);
        }
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Also if its hello takes several segments, and comes slowly.
#[test]
fn whoever_says_its_name_in_several_segments_is_served_and_counted() -> Result<()> {
    let _turn = take_turn();
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let limiter = start(&pair, &policy("hold"), "native")?;
    for by in [By::Http, By::Tls] {
        let before = counted(&limiter)?;
        let bytes = by.ask("b.example");
        let mut client = Connection::new(&pair, by)?;
        let segments = client.segments(0, &bytes, bytes.len().div_ceil(10), false)?;
        let (first, others) = segments.split_at(5);
        client.send(first)?;
        thread::sleep(LONG);
        client.send(others)?;
        ensure!(client.is_answered(&bytes)?, "{by:?}");
        ensure!(counted(&limiter)? > before, "{by:?}");
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}
