//! The options of connections that begin with a cookie: each that is promised is kept.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use testbed::{PinDirectory, SERVER_INTERFACE};

use super::{
    AT_ONCE, Asked, LARGE, MANY, Options, PORT, SMALL, clients, cookies_only, counted, serve, set,
    start_with, visit, wait_for_scale,
};
use crate::{pair, server_for, wait};

/// Both ends agree from one connection to the next while settings change; and existing connections go on.
#[test]
fn settings_hold_from_the_next_connection_on() -> Result<()> {
    let (pair, limiter) = cookies_only(Asked::default())?;
    let server = SocketAddr::new(server_for(clients()?[0])?, PORT);
    let mut early = pair.client.enter(|| Ok(TcpStream::connect(server)?))?;
    let all = Options {
        timestamps: true,
        sack: true,
        scales: Some([0, 0]),
    };
    let without_scale = Options {
        scales: None,
        ..all
    };
    let without_sack = Options { sack: false, ..all };
    for (setting, value, wanted) in [
        ("tcp_timestamps", "2", all),
        ("tcp_timestamps", "1", Options::NONE),
        ("tcp_timestamps", "2", all),
        ("tcp_timestamps", "0", Options::NONE),
        ("tcp_timestamps", "2", all),
        ("tcp_sack", "0", without_sack),
        ("tcp_sack", "1", all),
        ("tcp_window_scaling", "0", without_scale),
        ("tcp_window_scaling", "1", all),
        // Below and above net.core.rmem_max.
        ("tcp_rmem", "4096 131072 200000", all),
        ("tcp_rmem", "4096 131072 1000000000", all),
        // Larger than anything else that counts.
        ("tcp_rmem", "4096 131072 131072", all),
    ] {
        set(&pair.server, setting, value)?;
        for client in clients()? {
            let (options, took) = visit(&pair, client, LARGE)
                .with_context(|| format!("{client} with {setting} {value}"))?;
            assert!(took < AT_ONCE, "{client} with {setting} {value}: {took:?}");
            // Both ends agree on any scales.
            let scales = options.scales.map(|_| [0, 0]);
            assert_eq!(Options { scales, ..options }, wanted, "{setting} {value}");
        }
        early.write_all(&[7; 1000])?;
        early.read_exact(&mut [0; 1000])?;
    }
    let (cookies, to_socket) = counted(&limiter)?;
    assert!(cookies >= 24 && to_socket == 0, "{cookies} {to_socket}");
    assert!(limiter.stop()?.success());
    Ok(())
}

/// Where the application or a route decides on the window, no scale is promised, but all other options
/// are. One of the buffers is as large as the default of applications.
#[test]
fn no_scale_is_promised_that_something_else_decides_on() -> Result<()> {
    let buffer = |bytes| Asked {
        receive_buffer: Some(bytes),
        ..Asked::default()
    };
    let clamp = Asked {
        window_clamp: Some(100_000),
        ..Asked::default()
    };
    for asked in [buffer(65_536), buffer(20_000), buffer(2_000_000), clamp] {
        let (pair, limiter) = cookies_only(asked)?;
        for client in clients()? {
            let (options, took) =
                visit(&pair, client, LARGE).with_context(|| format!("{client}, {asked:?}"))?;
            assert!(took < AT_ONCE, "{client}, {asked:?}: {took:?}");
            assert!(options.timestamps && options.sack, "{asked:?}: {options:?}");
            assert_eq!(options.scales, None, "{asked:?}");
        }
        assert!(limiter.stop()?.success());
    }
    let (pair, limiter) = cookies_only(Asked::default())?;
    let [client, _] = clients()?;
    let scaled = || {
        let (options, _) = visit(&pair, client, SMALL)?;
        anyhow::Ok(options.scales.is_some())
    };
    assert!(scaled()?);
    let bounding = ["192.0.2.0/24", "dev", SERVER_INTERFACE, "window", "9000"];
    for (change, is_scaled) in [("add", false), ("del", true)] {
        pair.server
            .ip(&[&["route", change][..], &bounding].concat())?;
        wait(|| Ok(scaled()? == is_scaled))
            .with_context(|| format!("{change}: nothing changes"))?;
    }
    let log = limiter.log()?;
    ensure!(
        log.contains("SYN cookies promise no window scale: a route bounds windows"),
        "{log}"
    );
    assert!(limiter.stop()?.success());
    Ok(())
}

/// Without a daemon, pinned programs soon promise no scale. All else they read for themselves.
#[test]
fn without_a_daemon_no_scale_is_promised() -> Result<()> {
    let pins = PinDirectory::new()?;
    let pair = pair()?;
    set(&pair.server, "tcp_syncookies", "2")?;
    for end in [&pair.client, &pair.server] {
        set(end, "tcp_timestamps", "2")?;
    }
    let mut limiter = start_with(&pair, MANY, &[&pins.argument()])?;
    serve(&pair.server, Asked::default())?;
    wait_for_scale();
    let [client, _] = clients()?;
    visit(&pair, client, SMALL)?;
    let (options, _) = visit(&pair, client, SMALL)?;
    assert!(options.scales.is_some(), "{options:?}");
    limiter.kill()?;
    thread::sleep(Duration::from_secs(3));
    let (options, _) = visit(&pair, client, LARGE)?;
    assert!(options.timestamps && options.sack, "{options:?}");
    assert_eq!(options.scales, None);
    limiter.restart()?;
    wait_for_scale();
    let (options, _) = visit(&pair, client, LARGE)?;
    assert!(options.scales.is_some(), "{options:?}");
    limiter.show(&["detach"])?;
    Ok(())
}
