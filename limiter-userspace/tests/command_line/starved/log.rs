//! A log without a reader.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    os::fd::OwnedFd,
};

use anyhow::{Context as _, Result, ensure};
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::signal::{Signal, kill},
    unistd::{Pid, pipe},
};
use testbed::{CLIENT_INTERFACE, Frame, RawSender, SERVER_INTERFACE};

use crate::{BINARY, Scene, pair, succeed, text, wait_for};

/// Makes a full pipe.
fn full() -> Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe()?;
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    let mut filled = File::from(writer.try_clone()?);
    loop {
        match filled.write(&[b'.'; 4096]) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    // Blocking, like a daemon's stderr.
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok((reader, writer))
}

#[test]
fn a_log_that_nobody_reads_holds_nothing_up() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let (reader, writer) = full()?;
    let mut child = scene
        .run(&pair.server, &["-i", SERVER_INTERFACE, "--log-datapath"])
        .stderr(writer)
        .spawn()?;
    let ask = |arguments: &[&str]| {
        let mut command = pair.server.command(BINARY);
        command.args(arguments).arg("--socket").arg(scene.socket());
        command
    };
    // The daemon starts without a reader.
    wait_for(|| Ok(ask(&["status"]).output()?.status.success()))?;
    let frame = Frame::new("10.77.0.2".parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; 100])?;
    succeed(&mut ask(&["ban", "192.0.2.1"]))?;
    for _ in 0..3 {
        succeed(&mut ask(&["reload"]))?;
    }
    let status = succeed(&mut ask(&["status"]))?;
    let status = text(&status.stdout)?.to_owned();
    ensure!(status.contains("over_limit"), "{status}");

    // A late reader is told that lines are missing.
    let mut lines = BufReader::new(File::from(reader)).lines();
    let reported = lines.find(|line| {
        let line = line.as_ref();
        line.is_ok_and(|line| line.contains("the log was not read fast enough: "))
    });
    reported.context("the log has ended")??;
    kill(Pid::from_raw(child.id().try_into()?), Signal::SIGTERM)?;
    // The daemon logs its end, and then closes its end of the pipe.
    ensure!(lines.any(|line| line.is_ok_and(|line| line.contains("told to end"))));
    ensure!(child.wait()?.success());
    Ok(())
}
