//! Lists with feeds that change while the daemon runs; their status in commands and logs.

mod reported;

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{CLIENT_INTERFACE, Frame, Load, RawSender, RawSink, SERVER_INTERFACE};

use crate::{
    assert_fails, matches,
    pinned::{Pinned, assert_metric},
    succeed, wait_for,
};

const GOOD: &str = "10.77.0.2";
const BAD: &str = "10.77.0.3";
const LIMIT: &str = "limits: {PacketsPerIPAddress: {burst: 1000000, count: 1, period: 1h}}\n";

/// Longer than a changed feed takes to come into force.
const A_WHILE: Duration = Duration::from_secs(3);

/// A daemon that blocks the list `bad`, which has one feed as its only source.
pub(crate) struct Feeding {
    pub(crate) pinned: Pinned,
    pub(crate) feeds: Feeds,
}

/// A directory of feeds.
pub(crate) struct Feeds(TempDir);

impl Feeds {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a feed in one step, as the manual advises.
    pub(crate) fn replace(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.path("new"), text)?;
        Ok(fs::rename(self.path("new"), self.path(name))?)
    }

    /// Sets a feed's modification time to `age` ago.
    pub(crate) fn age(&self, name: &str, age: Duration) -> Result<()> {
        let file = fs::File::options().append(true).open(self.path(name))?;
        Ok(file.set_modified(SystemTime::now() - age)?)
    }

    /// Returns a configuration that blocks the list `bad`, with `more` fields, from the feed.
    pub(crate) fn configuration(&self, name: &str, more: &str) -> String {
        let path = self.path(name);
        format!(
            "lists: [{{name: bad, file: {}{more}}}]\nblock: bad\n{LIMIT}",
            path.display()
        )
    }
}

impl Feeding {
    /// Starts a daemon with `feed` in the file, modified `age` ago.
    pub(crate) fn start(feed: &str, age: Duration, more: &str, arguments: &[&str]) -> Result<Self> {
        let feeds = Feeds::new()?;
        feeds.replace("bad", feed)?;
        feeds.age("bad", age)?;
        let arguments = [&["-i", SERVER_INTERFACE], arguments].concat();
        let pinned = Pinned::start_with(&feeds.configuration("bad", more), &arguments)?;
        Ok(Self { pinned, feeds })
    }

    pub(crate) fn replace(&self, text: &str) -> Result<()> {
        self.feeds.replace("bad", text)
    }

    /// Returns the only list's status.
    pub(crate) fn list(&self) -> Result<Value> {
        let request = json!({"lists": null});
        let lists = self.pinned.limiter.read(&request, &["lists"])?;
        Ok(lists[0].clone())
    }

    pub(crate) fn is_blocked(&self, address: &str) -> Result<bool> {
        let explanation = self.pinned.limiter.explain(address)?;
        Ok(explanation["lists"]["listing"]["blocked"] == "all")
    }

    pub(crate) fn wait_until_blocked(&self, address: &str, blocked: bool) -> Result<()> {
        wait_for(|| Ok(self.is_blocked(address)? == blocked))
    }

    pub(crate) fn generation(&self) -> Result<u64> {
        let generation = self.pinned.limiter.status()?["policy"]["generation"].as_u64();
        generation.context("no policy is in force")
    }

    /// Waits until the log has `times` lines that match, and fails if there are more.
    #[track_caller]
    pub(crate) fn assert_logged(&self, times: usize, pattern: &str) -> Result<()> {
        let count = || -> Result<usize> {
            let log = self.pinned.limiter.log()?;
            Ok(log.lines().filter(|line| matches(line, pattern)).count())
        };
        wait_for(|| Ok(count()? >= times))
            .and_then(|()| {
                ensure!(count()? == times, "logged {} times", count()?);
                Ok(())
            })
            .with_context(|| {
                format!(
                    "{pattern}, in\n{}",
                    self.pinned.limiter.log().unwrap_or_default()
                )
            })
    }
}

pub(crate) fn hours(number: u64) -> Duration {
    Duration::from_hours(number)
}

/// One client stays within its limit, the other is on the list every other round. The first client
/// loses no packet. Each packet of the second one passes or is dropped by the list. No packet of
/// any other source is dropped.
#[test]
fn a_feed_is_replaced_while_traffic_flows() -> Result<()> {
    let feeding = Feeding::start("# nobody\n", hours(0), "", &[])?;
    let pinned = &feeding.pinned;
    let sink = RawSink::new(&pinned.pair.server, SERVER_INTERFACE)?;
    let sender = RawSender::new(&pinned.pair.client, CLIENT_INTERFACE)?;
    let progress = sender.progress();
    let frame =
        |source: &str| Frame::new(source.parse()?, "10.77.0.1".parse()?).udp(1, 2, &[0; 58]);
    let frames = [frame(GOOD)?, frame(BAD)?];
    let load = Load::steady(2_000.try_into()?, Duration::from_mins(2));
    let sending = thread::spawn(move || sender.send(load, &frames));
    let replaced = (|| {
        for (round, feed) in ["10.77.0.3\n", "192.0.2.1\n", "10.77.0.3/32\n"]
            .iter()
            .enumerate()
        {
            if round == 1 {
                // A half-edited configuration file does not hold up feeds.
                pinned.limiter.configure("limits: {Half")?;
            }
            feeding.replace(feed)?;
            feeding.wait_until_blocked(BAD, round != 1)?;
            let before = progress.sent();
            wait_for(|| Ok(progress.sent() >= before + 500))?;
        }
        anyhow::Ok(())
    })();
    progress.stop();
    let sent = sending.join().expect("the sender does not panic")?.packets;
    replaced?;

    wait_for(|| Ok(pinned.pair.received()? >= sent))?;
    let status = pinned.limiter.status()?;
    let arrived = sink.finish()?;
    let [good, bad] =
        [GOOD, BAD].map(|source| source.parse().map(|source| arrived.of(source).packets));
    let (good, bad) = (good?, bad?);
    let counted = |reason: &str| status["reasons"][reason].as_u64().unwrap_or_default();
    ensure!(good == sent.div_ceil(2), "{good} of {sent} arrived");
    ensure!(bad > 0 && counted("blocked_list") > 0, "{status:#}");
    ensure!(bad + counted("blocked_list") == sent / 2, "{status:#}");
    ensure!(counted("within_limits") == good + bad, "{status:#}");
    // The limit and its buckets stay unchanged.
    ensure!(status["limits"]["PacketsPerIPAddress"]["passed_packets"] == good + bad);
    ensure!(pinned.remaining("PacketsPerIPAddress", GOOD)? == 1_000_000 - good);
    ensure!(feeding.generation()? == 4);
    Ok(())
}

/// By a rename, in place, and by a new modification time alone.
#[test]
fn ways_to_write_a_feed() -> Result<()> {
    let feeding = Feeding::start("192.0.2.0/24\n", hours(5), ", max-age: 24h", &[])?;
    let age = || -> Result<f64> {
        let ns = feeding.list()?["age_ns"].as_f64();
        Ok(ns.context("the list has no age")? / 3.6e12)
    };
    ensure!((5.0..5.1).contains(&age()?));
    feeding.replace("192.0.2.0/24\n10.77.0.3\n")?;
    feeding.wait_until_blocked(BAD, true)?;
    feeding.assert_logged(1, "…INFO…list bad has 2 prefixes (before: 1)")?;
    ensure!(age()? < 0.1);
    fs::write(feeding.feeds.path("bad"), "192.0.2.0/24\n")?;
    feeding.wait_until_blocked(BAD, false)?;
    ensure!(feeding.generation()? == 3);

    // A new modification time alone makes no new policy.
    feeding.feeds.age("bad", hours(7))?;
    wait_for(|| Ok((7.0..7.1).contains(&age()?)))?;
    feeding.replace("192.0.2.0/25 # the same\n192.0.2.128/25\n")?;
    wait_for(|| Ok(age()? < 0.1))?;
    let list = feeding.list()?;
    ensure!(
        list["ipv4_prefixes"] == 1 && list["files"][0]["entries"] == 2,
        "{list:#}"
    );
    ensure!(feeding.generation()? == 3);
    ensure!(feeding.pinned.limiter.status()?["daemon"]["reloads"]["succeeded"] == 0);
    Ok(())
}

#[test]
fn a_feed_that_is_refused() -> Result<()> {
    let feeding = Feeding::start("10.77.0.3\n", hours(0), "", &[])?;
    let path = feeding.feeds.path("bad");
    let check = |refused: &str| -> Result<()> {
        wait_for(|| {
            let kept = feeding.list()?["files"][0]["kept_old"].clone();
            Ok(kept.as_str().is_some_and(|kept| matches(kept, refused)))
        })?;
        ensure!(feeding.list()?["state"] == "old");
        ensure!(feeding.is_blocked(BAD)? && feeding.generation()? == 1);
        let shown = feeding.pinned.limiter.show(&["status"])?;
        let path = path.display();
        let reported =
            format!("  NOT RENEWED: {path} {refused}; its previous content stays in force");
        ensure!(
            shown.lines().any(|line| matches(line, &reported))
                && shown.contains("list bad: 1 prefix, "),
            "{shown}"
        );
        let server = &feeding.pinned.pair.server;
        assert_metric(server, r#"limiter_list_refused{list="bad"} 1"#)?;
        assert_metric(
            server,
            r#"limiter_list_prefixes{list="bad",family="ipv4"} 1"#,
        )?;
        feeding.assert_logged(1, &format!("…WARN…list bad: …{refused}…"))
    };
    feeding.replace("<html>\n502 Bad Gateway\n</html>\n192.0.2.1\n")?;
    check("is refused: 3 of 4 entries cannot be read, …")?;
    fs::remove_file(&path)?;
    check("cannot be read: No such file or directory …")?;
    feeding.replace("")?;
    check("is refused: it is empty…")?;

    feeding.replace(&format!("{}nonsense\n", "10.77.0.4\n".repeat(20)))?;
    feeding.wait_until_blocked(BAD, false)?;
    feeding.assert_logged(1, "…WARN…list bad: …:21: invalid entry: …")?;
    ensure!(feeding.list()?["state"] == "ok" && feeding.list()?["bad_lines"] == 1);
    let server = &feeding.pinned.pair.server;
    assert_metric(server, r#"limiter_list_refused{list="bad"} 0"#)?;
    assert_metric(server, r#"limiter_list_bad_lines{list="bad"} 1"#)
}

/// The feed's prefixes leave when it turns stale, without a change of the file, and return once the
/// file changes.
#[test]
fn a_stale_feed_is_dropped() -> Result<()> {
    let more = ", max-age: 24h, when-stale: drop";
    let feeding = Feeding::start("10.77.0.3\n", hours(1), more, &[])?;
    ensure!(feeding.is_blocked(BAD)?);
    let nearly = hours(24).saturating_sub(A_WHILE);
    feeding.feeds.age("bad", nearly)?;
    feeding.wait_until_blocked(BAD, false)?;
    let list = feeding.list()?;
    ensure!(
        list["state"] == "dropped" && list["ipv4_prefixes"] == 0,
        "{list:#}"
    );
    let server = &feeding.pinned.pair.server;
    assert_metric(server, r#"limiter_list_stale{list="bad"} 1"#)?;
    feeding.assert_logged(
        1,
        "…WARN…list bad: … is stale, unchanged for more than …; its content is no longer on the \
         list",
    )?;
    let shown = feeding.pinned.limiter.show(&["status"])?;
    let reported = "  STALE: … old, and not in force";
    ensure!(shown.lines().any(|line| matches(line, reported)), "{shown}");
    // A reload treats it as stale, too.
    feeding.pinned.limiter.show(&["reload"])?;
    ensure!(!feeding.is_blocked(BAD)?);

    feeding.feeds.age("bad", hours(1))?;
    feeding.wait_until_blocked(BAD, true)?;
    assert_metric(server, r#"limiter_list_stale{list="bad"} 0"#)?;
    feeding.assert_logged(1, "…INFO…list bad: … is as it should be again")
}

/// Stale when the daemon first reads it, or soon afterwards.
#[test]
fn a_feed_is_stale_while_the_daemon_starts() -> Result<()> {
    let more = ", max-age: 24h, when-stale: drop";
    for to_go in [Duration::from_millis(200), Duration::from_secs(1)] {
        let nearly = hours(24).saturating_sub(to_go);
        let feeding = Feeding::start("10.77.0.3\n", nearly, more, &[])?;
        feeding.wait_until_blocked(BAD, false)?;
    }
    Ok(())
}

#[test]
fn a_stale_feed_is_reported() -> Result<()> {
    let feeding = Feeding::start("10.77.0.3\n", hours(25), ", max-age: 24h", &[])?;
    ensure!(feeding.is_blocked(BAD)? && feeding.list()?["state"] == "stale");
    feeding.assert_logged(
        1,
        "…WARN…list bad: … is stale, unchanged for more than …; its content stays on the list",
    )?;
    feeding.pinned.limiter.show(&["reload"])?;
    feeding.assert_logged(1, "…WARN…list bad: … is stale, …")?;
    let shown = feeding.pinned.limiter.show(&["lists"])?;
    let reported = "STALE: … is 1.04 days old, but in force";
    ensure!(shown.lines().any(|line| matches(line, reported)), "{shown}");
    Ok(())
}

/// An unconfirmed policy may lock an operator out, so feeds change nothing until it is confirmed.
/// Changes of feeds need no confirmation.
#[test]
fn feeds_wait_for_a_confirmation() -> Result<()> {
    let feeding = Feeding::start("192.0.2.1\n", hours(0), "", &["--confirm", "60s"])?;
    feeding.replace("10.77.0.3\n")?;
    thread::sleep(A_WHILE);
    ensure!(!feeding.is_blocked(BAD)? && feeding.generation()? == 1);
    feeding.pinned.limiter.show(&["confirm"])?;
    feeding.wait_until_blocked(BAD, true)?;
    let status = feeding.pinned.limiter.status()?;
    ensure!(
        status["daemon"]["reloads"]["unconfirmed_for_ns"].is_null(),
        "{status:#}"
    );
    ensure!(feeding.generation()? == 2);
    Ok(())
}

/// A reverted policy gets the feeds' present content, though their files were not watched
/// meanwhile.
#[test]
fn feeds_of_a_policy_that_is_reverted_to() -> Result<()> {
    let feeding = Feeding::start("192.0.2.1\n", hours(0), "", &["--confirm", "8s"])?;
    feeding.pinned.limiter.show(&["confirm"])?;
    feeding.pinned.reload(LIMIT)?;
    ensure!(feeding.list()?.is_null());
    feeding.replace("10.77.0.3\n")?;
    feeding.wait_until_blocked(BAD, true)?;
    // Policy 1 was in force again, and then got other lists.
    ensure!(feeding.generation()? == 2);
    feeding.replace("192.0.2.1\n")?;
    feeding.wait_until_blocked(BAD, false)
}

/// The pins keep a missing file's former content.
#[test]
fn a_daemon_starts_without_a_feed() -> Result<()> {
    let mut feeding = Feeding::start("10.77.0.3\n", hours(2), "", &[])?;
    ensure!(feeding.pinned.limiter.terminate()?.success());
    ensure!(feeding.list()?["ipv4_prefixes"] == 1, "without a daemon");
    ensure!(feeding.is_blocked(BAD)?);
    let path = feeding.feeds.path("bad");
    fs::remove_file(&path)?;
    feeding.pinned.restart_with(&[])?;
    ensure!(feeding.is_blocked(BAD)?);
    let list = feeding.list()?;
    ensure!(list["state"] == "old", "{list:#}");
    let age = list["age_ns"].as_u64();
    ensure!(
        age.is_some_and(|ns| Duration::from_nanos(ns) >= hours(2)),
        "{list:#}"
    );
    feeding.assert_logged(
        1,
        "…WARN…list bad: … cannot be read: …; its previous content stays in force",
    )?;
    feeding.replace("192.0.2.1\n")?;
    feeding.wait_until_blocked(BAD, false)?;

    // Without pins, a missing feed keeps the daemon from starting.
    ensure!(feeding.pinned.limiter.terminate()?.success());
    succeed(&mut feeding.pinned.with_pins("detach"))?;
    fs::remove_file(&path)?;
    assert_fails(
        &mut feeding.pinned.limiter.run(),
        &["…limiter.yaml:1:…: the file '…' cannot be read: …"],
    )
}

/// The interface stays limited under its old name until the next reload; changes of feeds do not
/// matter.
#[test]
fn an_interface_that_was_renamed() -> Result<()> {
    let feeding = Feeding::start("192.0.2.1\n", hours(0), "", &[])?;
    let server = &feeding.pinned.pair.server;
    for step in [
        &["link", "set", SERVER_INTERFACE, "down"][..],
        &["link", "set", SERVER_INTERFACE, "name", "other0"],
        &["link", "set", "other0", "up"],
    ] {
        server.ip(step)?;
    }
    feeding.replace("10.77.0.3\n")?;
    feeding.wait_until_blocked(BAD, true)?;
    let frame = Frame::new(BAD.parse()?, "10.77.0.1".parse()?).udp(1, 2, &[0; 58])?;
    RawSender::new(&feeding.pinned.pair.client, CLIENT_INTERFACE)?.send_frames(&[frame])?;
    wait_for(|| Ok(feeding.pinned.counted("blocked_list")? == 1))
}
