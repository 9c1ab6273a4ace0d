//! A pseudo-terminal without a window, and a program that runs on it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    num::NonZeroU16,
    os::fd::{AsFd as _, OwnedFd},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use nix::{
    pty::{Winsize, openpty},
    sys::{
        signal::{Signal, kill},
        termios::{Termios, tcgetattr},
    },
    unistd::Pid,
};
use vt100::Parser;

use crate::wait_for;

const ROWS: NonZeroU16 = NonZeroU16::new(24).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(80).unwrap();

/// A terminal of 80 columns and 24 rows, with a program on it. Dropping it kills the program.
pub(super) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Parser>>,
    /// The program's side, held open so that its final settings can be read.
    line: OwnedFd,
    before: Termios,
}

impl Terminal {
    /// Starts a program on a terminal of its own, with stderr as a separate pipe.
    pub(super) fn start(program: &str, arguments: &[&str]) -> Result<Self> {
        let size = Winsize {
            ws_row: ROWS.get(),
            ws_col: COLUMNS.get(),
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None)?;
        let before = tcgetattr(&pty.slave)?;
        // In its own session, the program cannot reach the terminal of the test's user.
        let child = Command::new("setsid")
            .arg(program)
            .args(arguments)
            .stdin(pty.slave.try_clone()?)
            .stdout(pty.slave.try_clone()?)
            .stderr(Stdio::piped())
            .spawn()?;
        let keyboard = File::from(pty.master);
        let screen = Arc::new(Mutex::new(Parser::new(ROWS, COLUMNS, 0)));
        let (mut output, drawn) = (keyboard.try_clone()?, Arc::clone(&screen));
        // Ends once all descriptors of the program's side are closed.
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length) = output.read(&mut buffer) {
                let mut screen = drawn.lock().unwrap_or_else(PoisonError::into_inner);
                screen.process(&buffer[..length]);
            }
        });
        Ok(Self {
            child,
            keyboard,
            screen,
            line: pty.slave,
            before,
        })
    }

    pub(super) fn press(&mut self, keys: &str) -> Result<()> {
        Ok(self.keyboard.write_all(keys.as_bytes())?)
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.child.id().try_into()?), signal)?)
    }

    /// Returns the screen, line by line.
    pub(super) fn shown(&self) -> String {
        self.look(vt100::Screen::contents)
    }

    /// Waits until the screen shows the text.
    pub(super) fn wait_for(&self, text: &str) -> Result<()> {
        wait_for(|| Ok(self.shown().contains(text)))
            .with_context(|| format!("no {text:?} in\n{}", self.shown()))
    }

    /// Returns whether the program uses the alternate screen and reads single keys.
    pub(super) fn is_taken(&self) -> Result<bool> {
        let taken = self.look(|screen| screen.alternate_screen() && screen.hide_cursor());
        Ok(taken && tcgetattr(self.line.as_fd())? != self.before)
    }

    /// Waits until the program ends, and fails unless the terminal's settings are restored. Returns
    /// the exit status and stderr.
    pub(super) fn finish(mut self) -> Result<(ExitStatus, String)> {
        wait_for(|| Ok(self.child.try_wait()?.is_some())).context("the program did not end")?;
        let status = self.child.wait()?;
        ensure!(
            tcgetattr(&self.line)? == self.before,
            "the terminal's settings were not restored"
        );
        // Its last output may still be on its way.
        wait_for(|| Ok(self.look(|screen| !screen.alternate_screen() && !screen.hide_cursor())))
            .context("the screen was not restored")?;
        let mut reported = String::new();
        let stderr = self.child.stderr.as_mut().context("no stderr")?;
        stderr.read_to_string(&mut reported)?;
        Ok((status, reported))
    }

    fn look<T>(&self, see: impl Fn(&vt100::Screen) -> T) -> T {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        see(screen.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Ignore the error of a program that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
