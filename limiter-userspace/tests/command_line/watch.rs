//! `limiter status --watch`, on a terminal and with piped output.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use nix::{
    pty::{Winsize, openpty},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use testbed::{Limiter, SERVER_INTERFACE};

use crate::{BINARY, GOOD, Scene, assert_fails, pair, text};

const INTERVAL: &str = "0.1";

fn start(namespace: &testbed::Namespace) -> Result<Limiter> {
    Limiter::start(
        Path::new(BINARY),
        namespace,
        GOOD,
        &["-i", SERVER_INTERFACE],
    )
}

fn watch(limiter: &Limiter) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(["status", "--watch", INTERVAL, "--socket"])
        .arg(limiter.socket());
    command
}

fn end(child: &mut Child, signal: Signal) -> Result<()> {
    kill(Pid::from_raw(child.id().try_into()?), signal)?;
    let status = child.wait()?;
    ensure!(status.success(), "{signal}: {status}");
    Ok(())
}

/// All cases share one daemon; the last case ends it.
#[test]
fn as_json_on_a_terminal_and_elsewhere_until_the_daemon_ends() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair.server)?;
    a_document_a_line(&limiter).context("as JSON")?;
    in_place_on_a_terminal(&limiter).context("on a terminal")?;
    one_below_the_other_elsewhere(&limiter).context("elsewhere")?;
    the_daemon_ends_meanwhile(limiter).context("at the daemon's end")
}

fn a_document_a_line(limiter: &Limiter) -> Result<()> {
    let mut child = watch(limiter)
        .arg("--json")
        .stdout(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(child.stdout.take().context("no stdout")?);
    for line in output.lines().take(3) {
        let status: Value = serde_json::from_str(&line?)?;
        assert_eq!(status["interfaces"][0]["name"], SERVER_INTERFACE);
    }
    // The reader has closed the pipe: the program ends without an error.
    ensure!(child.wait()?.success());
    Ok(())
}

fn in_place_on_a_terminal(limiter: &Limiter) -> Result<()> {
    const ENTER: &str = "\x1b[?1049h";
    const LEAVE: &str = "\x1b[?1049l";
    const SHOW_CURSOR: &str = "\x1b[?25h";
    const WRAP: &str = "\x1b[?7h";
    const HOME: &str = "\x1b[1;1H";
    let size = Winsize {
        ws_row: 5,
        ws_col: 60,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let terminal = openpty(Some(&size), None)?;
    let mut child = watch(limiter).stdout(terminal.slave).spawn()?;
    let mut shown = String::new();
    let mut screen = File::from(terminal.master);
    let mut read = |until: &dyn Fn(&str) -> bool| -> Result<String> {
        let mut buffer = [0; 4096];
        while !until(&shown) {
            let length = screen.read(&mut buffer)?;
            shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
        Ok(shown.clone())
    };
    read(&|shown| shown.matches(HOME).count() >= 3)?;
    end(&mut child, Signal::SIGINT)?;
    let shown = read(&|shown| shown.contains(LEAVE))?;
    let page = shown.split(HOME).nth(1).context("no page")?;
    ensure!(
        page.starts_with("server0: attached in native mode since "),
        "{page:?}"
    );
    // Five rows, each at its position; the last one shows that there are more.
    ensure!(page.contains("\x1b[5;1H… "), "{page:?}");
    ensure!(!page.contains('\n'), "it would scroll: {page:?}");
    let (entered, left) = (shown.find(ENTER), shown.rfind(LEAVE));
    ensure!(entered == Some(0) && left > entered, "{shown:?}");
    let last = shown.rsplit(HOME).next().context("no page")?;
    ensure!(
        last.contains(SHOW_CURSOR) && last.contains(WRAP),
        "{last:?}"
    );
    Ok(())
}

fn one_below_the_other_elsewhere(limiter: &Limiter) -> Result<()> {
    let mut child = watch(limiter).stdout(Stdio::piped()).spawn()?;
    let output = BufReader::new(child.stdout.as_mut().context("no stdout")?);
    let headings = output.lines().filter(|line| {
        line.as_ref()
            .is_ok_and(|line| line.starts_with("server0: attached in native mode"))
    });
    assert_eq!(headings.take(3).count(), 3);
    end(&mut child, Signal::SIGTERM)
}

fn the_daemon_ends_meanwhile(limiter: Limiter) -> Result<()> {
    let mut command = watch(&limiter);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn()?;
    let waiting = thread::spawn(move || child.wait_with_output());
    ensure!(limiter.stop()?.success());
    let output = waiting.join().expect("the waiting thread does not panic")?;
    assert_eq!(output.status.code(), Some(1));
    let reported = text(&output.stderr)?;
    ensure!(reported.starts_with("no limiter is running"), "{reported}");
    Ok(())
}

#[test]
fn without_a_daemon() -> Result<()> {
    let scene = Scene::new()?;
    let mut command = Command::new(BINARY);
    command
        .args(["status", "--watch", "--socket"])
        .arg(scene.socket());
    assert_fails(&mut command, &["no limiter is running …"])
}
