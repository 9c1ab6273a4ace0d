//! Other sources of a name that a TLS server may use instead of the first hello: a second hello, and a resumed session.

use anyhow::{Result, ensure};
use limiter_names::testing::{Hello, KEY_SHARE, records};

use super::{
    names::curl,
    own_client::{By, Connection, policy, reason, server, server_with},
    server_names, start,
};
use crate::pair;

/// Extensions that a TLS 1.3 server needs besides a key share: a curve, and signature algorithms.
const CURVE: (u16, &[u8]) = (10, &[0, 2, 0, 0x1d]);
const SIGNATURES: (u16, &[u8]) = (13, &[0, 4, 4, 3, 8, 4]);

/// A key share of that curve.
const KEY: &[u8] = &{
    let mut key = [9; 38];
    [key[0], key[1], key[2], key[3], key[4], key[5]] = [0, 36, 0, 0x1d, 0, 32];
    key
};

/// By default, nginx allows only older versions.
const TLS_13: &str = "ssl_protocols TLSv1.2 TLSv1.3;";

const CHANGE_CIPHER_SPEC: &[u8] = &[20, 3, 3, 0, 1, 1];

/// Returns a TLS 1.3 hello in a record. Without a key share, the server asks for a second one.
fn hello(name: &str, key: &[u8]) -> Vec<u8> {
    let hello = Hello {
        name: Some(name.as_bytes()),
        versions: &[4],
        others: &[CURVE, SIGNATURES, (KEY_SHARE, key)],
        ..Hello::NONE
    };
    let mut record = records(&hello.message(), 1 << 14);
    record[2] = 3;
    record
}

/// Sends a first hello, and after its response each part in a write of its own. Returns whether the server
/// asks for a second hello, and whether it continues the handshake.
fn responses(pair: &testbed::Pair, then: &[&[u8]]) -> Result<[bool; 2]> {
    let mut client = Connection::new(pair, By::Tls)?;
    let asks_again = client.is_answered(&hello("a.example", &[0, 0]))?;
    let Some((last, parts)) = then.split_last() else {
        return Ok([asks_again, false]);
    };
    for part in parts {
        client.ask(part)?;
    }
    Ok([asks_again, client.is_answered(last)?])
}

#[test]
fn a_second_hello_with_another_name_does_not_reach_the_server() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server_with(&pair, TLS_13)?;
    let (same, other) = (hello("a.example", KEY), hello("b.example", KEY));
    let [same_later, other_later] =
        [&same, &other].map(|second| [CHANGE_CIPHER_SPEC, second].concat());
    let asked: [(&[&[u8]], bool); 6] = [
        (&[&same], true),
        (&[&other], false),
        (&[&same_later], true),
        (&[&other_later], false),
        (&[CHANGE_CIPHER_SPEC, &same], true),
        (&[CHANGE_CIPHER_SPEC, &other], false),
    ];
    for (then, _) in asked {
        ensure!(
            responses(&pair, then)? == [true; 2],
            "without a limiter: {then:?}"
        );
    }
    for mode in ["native", "generic"] {
        let limiter = start(&pair, &policy("hold"), mode)?;
        limiter.take_precedence()?;
        for (then, is_same) in asked {
            let found = responses(&pair, then)?;
            ensure!(found == [true, is_same], "{mode} {then:?}: {found:?}");
        }
        ensure!(reason(&limiter, "name_contradicted")? >= 3, "{mode}");
        let status = limiter.status()?;
        let contradictory = &status["server_names"]["nameless"]["contradictory"];
        ensure!(*contradictory == 3, "{mode}: {status:#}");
        ensure!(server_names::counted(&limiter, "B")? == [0, 0], "{mode}");
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// The client's first hello has no key share for the server's only curve.
#[test]
fn a_client_that_is_asked_for_a_second_hello_is_served_and_counted() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server_with(&pair, &format!("{TLS_13} ssl_ecdh_curve secp384r1;"))?;
    for until_known in ["hold", "pass"] {
        let limiter = start(&pair, &policy(until_known), "native")?;
        limiter.take_precedence()?;
        curl(&pair, "https://b.example", &["--tlsv1.3"])?;
        ensure!(
            server_names::counted(&limiter, "B")?[0] > 0,
            "{until_known}"
        );
        ensure!(reason(&limiter, "name_contradicted")? == 0, "{until_known}");
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// The server may use the session's name, or a name after early data.
#[test]
fn a_hello_that_does_not_bind_the_server_is_held() -> Result<()> {
    const TICKET: (u16, &[u8]) = (35, &[7; 100]);
    const EARLY_DATA: (u16, &[u8]) = (42, &[]);
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let name = Some(&b"b.example"[..]);
    let tls12 = Hello {
        name,
        others: &[CURVE, SIGNATURES],
        ..Hello::NONE
    };
    let hellos = [
        (tls12, true),
        (
            Hello {
                session: &[7; 32],
                ..tls12
            },
            false,
        ),
        (
            Hello {
                others: &[CURVE, SIGNATURES, TICKET],
                ..tls12
            },
            false,
        ),
        (
            Hello {
                versions: &[4],
                others: &[CURVE, SIGNATURES, (KEY_SHARE, KEY), EARLY_DATA],
                ..tls12
            },
            false,
        ),
    ];
    for until_known in ["hold", "pass"] {
        let limiter = start(&pair, &policy(until_known), "native")?;
        limiter.take_precedence()?;
        for (hello, binds) in hellos {
            let mut client = Connection::new(&pair, By::Tls)?;
            let is_answered = client.is_answered(&records(&hello.message(), 1 << 14))?;
            ensure!(
                is_answered == (binds || until_known == "pass"),
                "{until_known} {hello:?}"
            );
        }
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}
