//! Takes the steps, and checks the invariants after each step.

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::{fs::FileTypeExt as _, net::UnixStream},
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use limiter_datapath::kernel::pins::ABI;
use nix::{
    sys::{
        signal::{Signal, kill},
        stat::Mode,
        wait::waitpid,
    },
    unistd::{Pid, mkfifo},
};
use serde_json::Value;
use tempfile::TempDir;
use testbed::{Crowd, Disk, Document, Limiter, Pair, PinDirectory, SERVER_INTERFACE, Sizes};

use crate::{
    counters::{Counters, decided_packets},
    files::{configuration, write_feed},
    policies, spare,
    step::Step,
    traffic::{self, SUSPECT, Traffic, WITHIN},
};

/// How long a step may take to show its effect.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long `limiter status` may take in a crowd.
const TO_RESPOND: Duration = Duration::from_secs(10);

/// The default address of the metrics.
const METRICS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 9470);

const STATE: &str = "state";

/// The clients that fill the metrics' port.
const CROWD: Sizes = Sizes {
    idle: 300,
    slow: 50,
    busy: 10,
};

/// A pinned limiter under traffic.
pub(crate) struct Scene {
    rng: Rng,
    /// The remaining steps of this round.
    steps: Vec<Step>,
    logs_verdicts: bool,
    /// The configuration in force.
    configuration: String,
    is_banned: bool,
    is_listed: bool,
    counters: Counters,
    traffic: Traffic,
    limiter: Limiter,
    pair: Pair,
    pins: PinDirectory,
    /// Holds the feed.
    feeds: TempDir,
    /// Holds the state file.
    disk: Disk,
}

impl Scene {
    pub(crate) fn new(mut rng: Rng) -> Result<Self> {
        let (pins, pair) = (PinDirectory::new()?, traffic::pair()?);
        let feeds = tempfile::tempdir()?;
        write_feed(feeds.path(), false)?;
        let disk = Disk::new()?;
        let configuration = configuration(&mut rng, feeds.path(), &disk.root().join(STATE));
        spare::make(&pair.server)?;
        let limiter = Limiter::start(
            Path::new(env!("CARGO_BIN_EXE_limiter")),
            &pair.server,
            &configuration,
            &arguments(&pins.argument(), &[]),
        )?;
        Ok(Self {
            rng,
            steps: Vec::new(),
            logs_verdicts: false,
            configuration,
            is_banned: false,
            is_listed: false,
            counters: Counters::default(),
            traffic: Traffic::start(&pair)?,
            limiter,
            pair,
            pins,
            feeds,
            disk,
        })
    }

    /// Returns the next step. A round takes all steps, each time in another order.
    pub(crate) fn next_step(&mut self) -> Step {
        if self.steps.is_empty() {
            self.steps = Step::ALL.to_vec();
            self.rng.shuffle(&mut self.steps);
        }
        self.steps.pop().unwrap_or(Step::Reload)
    }

    /// Takes a step, and fails if an invariant is broken.
    pub(crate) fn take(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Reload => {
                let generation = self.generation()?;
                self.reconfigure()?;
                self.limiter.show(&["reload"])?;
                ensure!(self.generation()? > generation);
            }
            Step::ReloadBroken => self.refused(|limiter| {
                let output = limiter.command(&["reload"]).output()?;
                ensure!(output.status.code() == Some(1), "{output:?}");
                ensure!(!output.stderr.is_empty());
                Ok(())
            })?,
            Step::HangUp => {
                let generation = self.generation()?;
                self.reconfigure()?;
                self.limiter.signal(Signal::SIGHUP)?;
                // The daemon may also notice by itself that the file has changed.
                self.wait_for("the reload", |status| {
                    status["policy"]["generation"].as_u64() > Some(generation)
                })?;
            }
            Step::HangUpBroken => self.refused(|limiter| limiter.signal(Signal::SIGHUP))?,
            Step::Kill => {
                self.limiter.kill()?;
                self.without_daemon()?;
                self.limiter.restart()?;
            }
            Step::Terminate => {
                ensure!(self.limiter.terminate()?.success());
                self.without_daemon()?;
                self.reconfigure()?;
                self.limiter.restart()?;
            }
            Step::EndInReload => {
                self.reconfigure()?;
                let mut reload = self.limiter.command(&["reload"]);
                let mut reload = reload.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
                self.sleep(400);
                let signal = self.signal();
                self.limiter.signal(signal)?;
                self.limiter.wait()?;
                reload.wait()?;
                self.without_daemon()?;
                self.limiter.restart()?;
            }
            Step::EndInStart => {
                self.limiter.kill()?;
                let mut start = self.limiter.run().stderr(Stdio::null()).spawn()?;
                self.sleep(800);
                kill(Pid::from_raw(start.id().try_into()?), self.signal())?;
                start.wait()?;
                self.without_daemon()?;
                self.limiter.restart()?;
            }
            Step::EndInReset => self.end_in_reset()?,
            Step::Upgrade => {
                self.limiter.kill()?;
                self.logs_verdicts = !self.logs_verdicts;
                self.restart_with(&[])?;
            }
            Step::Expire => {
                let generation = self.generation()?;
                self.unconfirmed("1s")?;
                self.wait_for("the end of the policy", |status| {
                    status["daemon"]["reloads"]["unconfirmed_for_ns"].is_null()
                })?;
                ensure!(self.generation()? == generation);
                ensure!(self.limiter.terminate()?.success());
                self.restart_with(&[])?;
            }
            Step::KillUnconfirmed => {
                self.unconfirmed("60s")?;
                self.limiter.kill()?;
                self.without_daemon()?;
                self.restart_with(&[])?;
            }
            Step::Ban => self.ban()?,
            Step::BanPinned => {
                self.limiter.kill()?;
                self.ban()?;
                self.without_daemon()?;
                self.limiter.restart()?;
            }
            Step::List => self.list()?,
            Step::Replace => {
                spare::replace(&self.pair.server)?;
                spare::wait_until_limited(&self.pair.server)?;
            }
            Step::ReplacePinned => self.replace_pinned()?,
            Step::Unreadable => self.unreadable()?,
            Step::Crowd => self.crowd()?,
            Step::Burst => self.burst()?,
            Step::LosePins => self.lose_pins()?,
            Step::HangDisk => self.hang_disk()?,
        }
        if step.may_give_up_a_policy() {
            self.counters.give_up();
        }
        self.check().map(drop)
    }

    /// Ends the traffic, and fails unless every packet that arrived was judged and counted.
    pub(crate) fn finish(self) -> Result<()> {
        let Self {
            traffic,
            mut limiter,
            mut counters,
            pair,
            pins,
            ..
        } = self;
        traffic.finish()?;
        let status = limiter.status()?;
        counters.advance(&status)?;
        let (decided_packets, received) = (decided_packets(&status)?, pair.received()?);
        ensure!(
            decided_packets == received,
            "{received} packets arrived, {decided_packets} were judged"
        );
        limiter.kill()?;
        let pinned = limiter.status()?;
        for counted in ["reasons", "limits"] {
            ensure!(
                pinned[counted] == status[counted],
                "the pins and the daemon show different {counted}"
            );
        }
        let directory = pins.path();
        let directory = directory.to_str().context("the path is not UTF-8")?;
        limiter.show(&["detach", "--pin", directory])?;
        ensure!(!pins.path().exists(), "pins are left");
        Ok(())
    }

    fn check(&mut self) -> Result<Value> {
        let received = self.pair.received()?;
        let status = self.limiter.status()?;
        ensure!(status["interfaces"][0]["attached"] == true, "{status:#}");
        self.counters.advance(&status)?;
        let decided_packets = decided_packets(&status)?;
        ensure!(
            decided_packets >= received,
            "{received} packets had arrived, {decided_packets} were judged"
        );
        self.traffic.check()?;
        Ok(status)
    }

    /// Lists the suspect in the feed, or removes it.
    fn list(&mut self) -> Result<()> {
        let generation = self.generation()?;
        self.is_listed = !self.is_listed;
        write_feed(self.feeds.path(), self.is_listed)?;
        self.wait_for("the list", |status| {
            status["policy"]["generation"] == generation + 1
        })?;
        self.shut_out()
    }

    /// Bans the suspect, or lifts its ban.
    fn ban(&mut self) -> Result<()> {
        self.is_banned = !self.is_banned;
        let command = if self.is_banned { "ban" } else { "unban" };
        let pin = self.pins.argument();
        self.limiter.show(&[command, &SUSPECT.to_string(), &pin])?;
        self.shut_out()
    }

    /// Replaces the second interface while no daemon runs.
    fn replace_pinned(&mut self) -> Result<()> {
        self.limiter.kill()?;
        spare::replace(&self.pair.server)?;
        self.without_daemon()?;
        self.limiter.restart()?;
        spare::wait_until_limited(&self.pair.server)
    }

    /// Restarts the daemon with a named pipe in place of the state file, then with the file again.
    fn unreadable(&mut self) -> Result<()> {
        let [state, good, aside] =
            [STATE, "good", "state.not-restored-1"].map(|name| self.disk.root().join(name));
        self.wait_for("a state file", |status| {
            status["daemon"]["state"]["saved_at"].is_string()
        })?;
        self.limiter.kill()?;
        fs::rename(&state, &good)?;
        mkfifo(&state, Mode::S_IRUSR | Mode::S_IWUSR)?;
        self.limiter.restart()?;
        ensure!(fs::symlink_metadata(&aside)?.file_type().is_fifo());
        self.wait_for("another state file", |status| {
            status["daemon"]["state"]["saved_at"].is_string()
        })?;
        ensure!(self.limiter.terminate()?.success());
        ensure!(fs::symlink_metadata(&state)?.is_file());
        fs::remove_file(aside)?;
        fs::rename(&good, &state)?;
        self.without_daemon()?;
        self.limiter.restart()?;
        ensure!(self.limiter.status()?["daemon"]["state"]["error"].is_null());
        Ok(())
    }

    /// Ends the daemon during resets and refunds of the first client's buckets.
    fn end_in_reset(&mut self) -> Result<()> {
        let client = WITHIN.to_string();
        let limit = ["--limit", "PacketsPerIPAddress"];
        let reset = [&["reset", &client][..], &limit].concat();
        let refund = [&["refund", &client, "--cost", "100"][..], &limit].concat();
        let both = [&reset[..], &refund].into_iter().cycle().take(20);
        let resets = both.map(|arguments| {
            let mut command = self.limiter.command(arguments);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        });
        let resets: Vec<_> = resets.collect::<Result<_, _>>()?;
        self.sleep(100);
        let signal = self.signal();
        self.limiter.signal(signal)?;
        self.limiter.wait()?;
        for mut command in resets {
            command.wait()?;
        }
        self.without_daemon()?;
        self.limiter.restart()?;
        Ok(())
    }

    /// Fills the metrics' port and the control socket, which must not stop anything else.
    fn crowd(&mut self) -> Result<()> {
        let crowd = Crowd::gather(&self.pair.server, METRICS.into(), Document::METRICS, CROWD);
        let silent = (0..100).map(|_| UnixStream::connect(self.limiter.socket()));
        let silent: Vec<_> = silent.collect::<Result<_, _>>()?;
        let deadline = Instant::now() + PATIENCE;
        while crowd.arrived() < CROWD.total() || crowd.responses() == 0 {
            ensure!(
                Instant::now() < deadline,
                "the daemon does not answer the crowd"
            );
            let begun = Instant::now();
            self.limiter.status()?;
            ensure!(
                begun.elapsed() < TO_RESPOND,
                "status took {:?}",
                begun.elapsed()
            );
            self.check()?;
        }
        let generation = self.generation()?;
        self.reconfigure()?;
        self.limiter.show(&["reload"])?;
        ensure!(self.generation()? > generation);
        self.check()?;
        drop(silent);
        crowd.disperse()
    }

    /// Sends many requests to the control socket at once. Each must be carried out.
    fn burst(&mut self) -> Result<()> {
        let others: Vec<_> = (1..=40)
            .map(|number| format!("198.51.100.{number}"))
            .collect();
        let reloads = (0..20).map(|_| vec!["reload"]);
        let bans = others.iter().map(|other| vec!["ban", other]);
        let looks = (0..10).map(|_| vec!["status"]);
        let asked = reloads.chain(bans).chain(looks).map(|arguments| {
            let mut command = self.limiter.command(&arguments);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
        });
        let asked: Vec<_> = asked.collect::<Result<_, _>>()?;
        for child in asked {
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "{output:?}");
        }
        let others = others.iter().map(String::as_str);
        let arguments: Vec<_> = ["unban"].into_iter().chain(others).collect();
        self.limiter.show(&arguments).map(drop)
    }

    /// Removes pins, which the daemon makes again at a reload or by itself.
    fn lose_pins(&mut self) -> Result<()> {
        let version = format!("v{ABI}");
        let directories = ["", "interfaces", &version];
        let directory = directories[self.rng.usize(..directories.len())];
        fs::remove_dir_all(self.pins.path().join(directory))?;
        self.check()?;
        if self.rng.bool() {
            self.reconfigure()?;
            self.limiter.show(&["reload"])?;
        }
        self.wait_for("the pins", |status| status["lost_pin"].is_null())
    }

    /// Kills a daemon while its disk hangs, and starts another before the disk answers.
    fn hang_disk(&mut self) -> Result<()> {
        self.limiter.kill()?;
        self.disk.freeze()?;
        let hung = self.restart_while_it_hangs();
        self.disk.thaw()?;
        waitpid(hung?, None)?;
        self.wait_for("a state file", |status| {
            status["daemon"]["state"]["saved_at"].is_string()
        })
    }

    /// Returns the process of the hanging daemon.
    fn restart_while_it_hangs(&mut self) -> Result<Pid> {
        self.limiter.restart()?;
        self.wait_for("a save that hangs", |status| {
            let error = &status["daemon"]["state"]["error"];
            error
                .as_str()
                .is_some_and(|error| error.contains("saving hangs"))
        })?;
        self.check()?;
        let hung = Pid::from_raw(self.limiter.id().try_into()?);
        self.limiter.signal(Signal::SIGKILL)?;
        self.wait_for("the end of the daemon", |status| status["daemon"].is_null())?;
        self.without_daemon()?;
        self.limiter.restart()?;
        self.check()?;
        Ok(hung)
    }

    fn shut_out(&mut self) -> Result<()> {
        self.traffic.shut_out(self.is_banned || self.is_listed)
    }

    /// Lets the pinned program enforce without a daemon for a while.
    fn without_daemon(&mut self) -> Result<()> {
        ensure!(self.check()?["daemon"].is_null());
        self.sleep(200);
        Ok(())
    }

    /// Waits for a random time below `most` milliseconds.
    fn sleep(&mut self, most: u64) {
        thread::sleep(Duration::from_millis(self.rng.u64(..most)));
    }

    fn signal(&mut self) -> Signal {
        if self.rng.bool() {
            Signal::SIGKILL
        } else {
            Signal::SIGTERM
        }
    }

    /// Writes another configuration, for the next reload.
    fn reconfigure(&mut self) -> Result<()> {
        self.traffic.may_switch();
        let state = self.disk.root().join(STATE);
        self.configuration = configuration(&mut self.rng, self.feeds.path(), &state);
        self.limiter.configure(&self.configuration)
    }

    /// Asks for a reload that must be refused and change nothing.
    fn refused(&mut self, ask: impl FnOnce(&Limiter) -> Result<()>) -> Result<()> {
        let before = self.limiter.status()?;
        let failed = before["daemon"]["reloads"]["failed"].as_u64();
        let failed = failed.context("no count of failures")?;
        self.limiter.configure(policies::broken(&mut self.rng))?;
        ask(&self.limiter)?;
        self.wait_for("the refusal", |status| {
            status["daemon"]["reloads"]["failed"].as_u64() > Some(failed)
        })?;
        let (policy, expected) = (&self.limiter.status()?["policy"], &before["policy"]);
        ensure!(
            policy == expected,
            "{policy} after a refused reload, {expected} before:\n{}",
            self.limiter.log()?
        );
        self.limiter.configure(&self.configuration)?;
        // Otherwise the daemon reloads it by itself, up to two seconds later, in the middle of another step.
        self.limiter.show(&["reload"]).map(drop)
    }

    /// Starts another daemon with a policy that awaits confirmation.
    fn unconfirmed(&mut self, patience: &str) -> Result<()> {
        self.limiter.kill()?;
        self.reconfigure()?;
        // The previous policy returns, and the next daemon puts this one in force.
        self.traffic.may_switch();
        self.traffic.may_switch();
        self.restart_with(&["--confirm", patience])
    }

    fn restart_with(&mut self, more: &[&str]) -> Result<()> {
        let pin = self.pins.argument();
        let mut arguments = arguments(&pin, more);
        if self.logs_verdicts {
            arguments.push("--log-datapath");
        }
        self.limiter.restart_with(&arguments)
    }

    fn generation(&self) -> Result<u64> {
        let generation = self.limiter.status()?["policy"]["generation"].as_u64();
        generation.context("the policy has no number")
    }

    fn wait_for(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !condition(&self.limiter.status()?) {
            ensure!(Instant::now() < deadline, "{what} did not come in time");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

fn arguments<'a>(pin: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let interface = [
        "-i",
        SERVER_INTERFACE,
        "-i",
        spare::NAME,
        "--mode",
        "native",
    ];
    [&interface[..], &[pin], more].concat()
}
