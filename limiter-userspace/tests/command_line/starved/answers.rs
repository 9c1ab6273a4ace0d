//! Who holds connections to the control socket, or does not read what was asked for.

use std::{
    io::Write as _,
    os::unix::net::UnixStream,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};

use super::{allow, assert_answers, take_descriptors, without_a_lapse};
use crate::{
    GOOD,
    pinned::Pinned,
    sieve::{self, flood},
};

/// Connections to the control socket on which nothing more is said than that.
fn say(pinned: &Pinned, number: usize, beginning: &[u8]) -> Result<Vec<UnixStream>> {
    let connect = || {
        let mut stream = UnixStream::connect(pinned.limiter.socket())?;
        // Where it was hung up on already, it is not in the way either.
        let _ = stream.write_all(beginning);
        Ok(stream)
    };
    (0..number).map(|_| connect()).collect()
}

#[test]
fn who_says_nothing_on_the_control_socket_keeps_nobody_waiting() -> Result<()> {
    let pinned = Pinned::start(GOOD)?;
    allow(&pinned, 256)?;
    let _silent = say(&pinned, 300, b"")?;
    assert_answers(&pinned)?;
    let _stuck = say(&pinned, 300, b"{\"version\":1,")?;
    assert_answers(&pinned)?;
    // As many as are answered at once, none of whom reads the answer.
    let _deaf = say(&pinned, 16, b"{\"version\":1,\"command\":\"policy\"}\n")?;
    assert_answers(&pinned)
}

#[test]
fn without_a_free_descriptor_questions_are_answered_and_sieves_go_on() -> Result<()> {
    let pinned = Pinned::start(sieve::CONFIGURATION)?;
    flood(&pinned, || {
        without_a_lapse(&pinned, || {
            let _taken = take_descriptors(&pinned)?;
            for _ in 0..5 {
                assert_answers(&pinned)?;
                thread::sleep(Duration::from_millis(300));
            }
            allow(&pinned, 1_024)?;
            assert_answers(&pinned)
        })
    })
}

/// A command whose output nobody reads.
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
    for _ in 0..20 {
        commands.push(unread(&pinned, &["status", "--watch"])?);
        // It waits for the next line.
        let mut stream = unread(&pinned, &["ban", "--stdin"])?;
        let input = stream.stdin.as_mut().context("an input")?;
        input.write_all(b"192.0.2.1\n192.0.2.")?;
        commands.push(stream);
    }
    thread::sleep(Duration::from_secs(1));
    assert_answers(&pinned)?;
    for mut command in commands {
        command.kill()?;
        command.wait()?;
    }
    Ok(())
}
