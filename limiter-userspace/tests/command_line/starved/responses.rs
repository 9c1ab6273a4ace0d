//! Clients that hold connections to the control socket, or do not read the responses.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{allow, assert_responds, take_descriptors, without_a_lapse};
use crate::{
    GOOD, bans,
    pinned::Pinned,
    sieve::{self, flood},
    wait_for,
};

/// Opens connections to the control socket that send `beginning` and then stay silent.
fn say(pinned: &Pinned, number: usize, beginning: &[u8]) -> Result<Vec<UnixStream>> {
    let connect = || {
        let mut stream = UnixStream::connect(pinned.limiter.socket())?;
        // A connection already closed by the daemon is harmless, too.
        let _ = stream.write_all(beginning);
        Ok(stream)
    };
    (0..number).map(|_| connect()).collect()
}

#[test]
fn silent_clients_of_the_control_socket_keep_nobody_waiting() -> Result<()> {
    let pinned = Pinned::start(GOOD)?;
    allow(&pinned, 256)?;
    let _silent = say(&pinned, 300, b"")?;
    assert_responds(&pinned)?;
    let _stuck = say(&pinned, 300, b"{\"version\":4,")?;
    assert_responds(&pinned)?;
    // As many as the daemon serves at once, none of which reads the response.
    let _deaf = say(&pinned, 16, b"{\"version\":4,\"body\":{\"policy\":null}}\n")?;
    assert_responds(&pinned)
}

#[test]
fn without_a_free_descriptor_questions_are_answered_and_sieves_go_on() -> Result<()> {
    let pinned = Pinned::start(sieve::CONFIGURATION)?;
    flood(&pinned, || {
        without_a_lapse(&pinned, || {
            let _taken = take_descriptors(&pinned)?;
            for _ in 0..5 {
                assert_responds(&pinned)?;
                thread::sleep(Duration::from_millis(300));
            }
            allow(&pinned, 1_024)?;
            assert_responds(&pinned)
        })
    })?;
    let log = pinned.limiter.log()?;
    ensure!(
        log.contains(
            "WARN cannot accept connections to the metrics port, which wait: Too many open files"
        ),
        "{log}"
    );
    Ok(())
}

/// Starts a command with an unread output.
fn unread(pinned: &Pinned, arguments: &[&str]) -> Result<Child> {
    let mut command = pinned.limiter.command(arguments);
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    child.context("cannot run the binary")
}

#[test]
fn commands_that_stand_still_keep_nobody_waiting() -> Result<()> {
    let pinned = Pinned::start(GOOD)?;
    let mut commands = Vec::new();
    for number in 0..20 {
        let mut watch = unread(&pinned, &["status", "--watch"])?;
        // Its first byte shows that it has sent its request.
        let output = watch.stdout.as_mut().context("an output")?;
        output.read_exact(&mut [0])?;
        commands.push(watch);
        // The command waits for its next line of input.
        let mut stream = unread(&pinned, &["ban", "--stdin"])?;
        let input = stream.stdin.as_mut().context("an input")?;
        write!(input, "192.0.2.{number}\n192.0.2.")?;
        commands.push(stream);
    }
    wait_for(|| Ok(bans(&pinned.limiter)?.len() == 20))?;
    assert_responds(&pinned)?;
    for mut command in commands {
        command.kill()?;
        command.wait()?;
    }
    Ok(())
}
