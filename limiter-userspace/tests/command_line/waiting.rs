//! A daemon that starts before its interfaces exist, as at boot: it has all saved state from the
//! start, and loses none while it waits.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{Frame, Limiter, Namespace, PinDirectory, RawSender};

use crate::{BINARY, banned, succeed, wait_for};

const SOURCE: &str = "10.77.0.2";
const BANNED: &str = "10.77.0.9";
const BANNED_LATER: &str = "10.77.0.10";
const BANNED_BRIEFLY: &str = "10.77.0.11";

/// Brings pressure on a sieve with some packets, and drops none.
const BUSY: &str =
    "mode: observe, id: total, cost: packets, burst: 100000, count: 10, period: 1s, ip-rep: main";

/// A namespace in which the interface `late0` comes and goes.
struct Scene {
    server: Namespace,
    pins: Option<PinDirectory>,
    directory: TempDir,
    buckets: &'static str,
}

impl Scene {
    fn new(buckets: &'static str, is_pinned: bool) -> Result<Self> {
        Ok(Self {
            server: Namespace::new()?,
            pins: is_pinned.then(PinDirectory::new).transpose()?,
            directory: tempfile::tempdir()?,
            buckets,
        })
    }

    fn start(&self) -> Result<Limiter> {
        self.start_with("")
    }

    /// Starts it with another limit added.
    fn start_with(&self, limit: &str) -> Result<Limiter> {
        let configuration = format!(
            "interfaces: [late0, never0]\nstate: {}\nbuckets: {}\n\
             limits: {{PacketsPerIPAddress: {{burst: 20, count: 1, period: 1h}}, Busy: {{{BUSY}}}, \
             {limit}}}\n\
             ip-rep: [{{name: main, buckets: 2, size: 4, percentage: 50}}]\n",
            self.directory.path().join("state").display(),
            self.buckets
        );
        let mut arguments = vec!["--metrics", "off", "--log-format", "human"];
        let pin = self.pins.as_ref().map(PinDirectory::argument);
        arguments.extend(pin.as_deref());
        Limiter::start(Path::new(BINARY), &self.server, &configuration, &arguments)
    }

    /// Ends the limiter and removes its pins, as a reboot does.
    fn shut_down(&self, limiter: Limiter) -> Result<()> {
        if let Some(pins) = &self.pins {
            let mut detach = limiter.command(&["detach"]);
            succeed(detach.arg("--pin").arg(pins.path()))?;
        } else {
            ensure!(limiter.stop()?.success());
        }
        Ok(())
    }

    fn appear(&self, limiter: &Limiter) -> Result<()> {
        self.server.ip_batch(
            // No packets but the test's: no ARP, no router solicitation.
            "link add late0 type veth peer name late1\n\
             link set late0 arp off addrgenmode none\nlink set late0 up\n\
             link set late1 arp off addrgenmode none\nlink set late1 up\n",
        )?;
        wait_for(|| Ok(limiter.status()?["interfaces"][0]["attached"] == true))
    }

    fn vanish(&self) -> Result<()> {
        self.server.ip(&["link", "delete", "late0"]).map(drop)
    }

    /// Sends packets, and waits until they are counted under a reason.
    fn send(&self, limiter: &Limiter, source: &str, packets: u64, reason: &str) -> Result<()> {
        let frame = Frame::new(source.parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
        let counted = || {
            let count = limiter.status()?["reasons"][reason].as_u64();
            count.with_context(|| format!("no count of {reason}"))
        };
        let before = counted()?;
        let frames = vec![frame; usize::try_from(packets)?];
        RawSender::new(&self.server, "late1")?.send_frames(&frames)?;
        wait_for(|| Ok(counted()? == before + packets))
    }
}

/// Returns an address's remaining tokens, the bans, and the sieve's entries.
fn known(limiter: &Limiter) -> Result<(Value, Vec<String>, Value)> {
    let explained = limiter.explain(SOURCE)?;
    let bans = banned(limiter)?;
    let sieve = limiter.ask(&json!({"sieves": {"name": "main"}}))?;
    let entries = sieve[0]["lists"].as_array().context("lists")?.iter();
    let entries = entries.map(|list| list["entries"].clone()).collect();
    let limits = explained["limits"].as_array().context("limits")?;
    let mut limits = limits.iter();
    let limit = limits.find(|limit| limit["limit"] == "PacketsPerIPAddress");
    let remaining = limit.map(|limit| limit["remaining"].clone());
    Ok((remaining.unwrap_or_default(), bans, entries))
}

fn is_nobody(entries: &Value) -> bool {
    entries
        .as_array()
        .is_none_or(|lists| lists.iter().all(|list| *list == 0))
}

fn boot_without_an_interface(buckets: &'static str, is_pinned: bool) -> Result<()> {
    let scene = Scene::new(buckets, is_pinned)?;
    let limiter = scene.start()?;
    scene.appear(&limiter)?;
    scene.send(&limiter, SOURCE, 15, "within_limits")?;
    limiter.show(&["ban", BANNED, "--for", "1h"])?;
    wait_for(|| {
        for neighbour in 100..200 {
            let source = format!("10.77.0.{neighbour}");
            scene.send(&limiter, &source, 1, "within_limits")?;
            if !is_nobody(&known(&limiter)?.2) {
                return Ok(true);
            }
        }
        Ok(false)
    })?;
    // The pressure ends before the next address arrives.
    let (remaining, bans, entries) = known(&limiter)?;
    assert_eq!((remaining, bans.len()), (5.into(), 1));
    scene.shut_down(limiter)?;
    scene.vanish()?;

    // Twice: saving while it waits keeps the state.
    for bans in 1..=2 {
        let mut limiter = scene.start()?;
        let status = limiter.status()?;
        ensure!(status["interfaces"][0]["attached"] == false, "{status}");
        let (remaining, banned, known) = known(&limiter)?;
        assert_eq!(
            (remaining, banned.len(), &known),
            (5.into(), bans, &entries)
        );
        if bans == 1 {
            limiter.show(&["ban", BANNED_LATER])?;
        }
        // The sweep over bans takes one that has ended off the count.
        limiter.show(&["ban", BANNED_BRIEFLY, "--for", "1ms"])?;
        wait_for(|| Ok(limiter.status()?["bans"]["ipv4"] == 2))?;
        let log = limiter.log()?;
        ensure!(
            !log.contains("no maps") && !log.contains("cannot forget"),
            "{log}"
        );
        ensure!(
            log.contains(" the policy is ready, but attached to no interface yet (limits: 2,"),
            "{log}"
        );
        ensure!(!log.contains("enforcing"), "{log}");
        if is_pinned {
            // After a crash the pins are taken over, too.
            limiter.kill()?;
            limiter.restart()?;
        }
        scene.shut_down(limiter)?;
    }

    let limiter = scene.start()?;
    scene.appear(&limiter)?;
    let (remaining, bans, known) = known(&limiter)?;
    assert_eq!((remaining, known), (5.into(), entries));
    assert_eq!(bans.len(), 2);
    scene.send(&limiter, BANNED, 3, "banned")?;
    scene.send(&limiter, BANNED_LATER, 3, "banned")?;
    scene.send(&limiter, SOURCE, 5, "within_limits")?;
    scene.send(&limiter, SOURCE, 4, "over_limit")?;
    scene.shut_down(limiter)
}

#[test]
fn all_that_was_saved_is_there_before_any_interface() -> Result<()> {
    boot_without_an_interface("{store: table}", false)?;
    boot_without_an_interface("{store: hash}", false)
}

#[test]
fn all_that_was_saved_is_there_when_it_is_pinned() -> Result<()> {
    boot_without_an_interface("{}", true)
}

/// Each interface has its own buckets, even one that does not exist yet.
#[test]
fn buckets_of_an_interface_that_is_not_there() -> Result<()> {
    boot_without_an_interface("{scope: interface}", false)?;
    boot_without_an_interface("{scope: interface}", true)
}

/// A daemon killed in its first start has pinned nothing that enforces: the next one restores the
/// state file, by the names in it.
#[test]
fn a_first_start_that_was_cut_short_does_not_stand_for_the_state() -> Result<()> {
    let scene = Scene::new("{}", true)?;
    // Another limit comes first.
    let limiter =
        scene.start_with("Abuse: {id: total, cost: packets, burst: 9, count: 1, period: 1s}")?;
    scene.appear(&limiter)?;
    limiter.show(&["ban", BANNED])?;
    scene.send(&limiter, SOURCE, 3, "within_limits")?;
    scene.shut_down(limiter)?;
    scene.vanish()?;
    let state = scene.directory.path().join("state");
    let saved = std::fs::read(&state)?;

    // A kill before the confirmation leaves such pins.
    let pins = scene.pins.as_ref().context("pins")?;
    let pin = pins.argument();
    let arguments = ["--metrics", "off", "--log-format", "human", &pin];
    let mut limiter = scene.start()?;
    limiter.kill()?;
    std::fs::remove_dir_all(pins.path())?;
    limiter.restart_with(&[&arguments[..], &["--confirm", "60s"]].concat())?;
    limiter.kill()?;
    std::fs::write(&state, saved)?;
    limiter.restart_with(&arguments)?;
    let (remaining, bans, _) = known(&limiter)?;
    assert_eq!(
        (remaining, bans.len()),
        (17.into(), 1),
        "{}",
        limiter.log()?
    );
    Ok(())
}
