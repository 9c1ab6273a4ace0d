//! Lists whose feeds change while the daemon runs, and what is told of them.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{CLIENT_INTERFACE, Frame, Load, RawSender, RawSink, SERVER_INTERFACE};

use crate::{
    BINARY, assert_fails, matches,
    pinned::{Pinned, assert_metric},
    succeed, text, wait_for,
};

const GOOD: &str = "10.77.0.2";
const BAD: &str = "10.77.0.3";
const LIMIT: &str = "limits: {PacketsPerIPAddress: {burst: 1000000, count: 1, period: 1h}}\n";

/// Longer than a feed that is written takes to be in force, and shorter than anybody minds.
const A_WHILE: Duration = Duration::from_secs(3);

/// A daemon that blocks the list `bad`, whose one feed is a file beside nothing else.
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

    /// Writes a feed in one step, as is advised.
    pub(crate) fn replace(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.path("new"), text)?;
        Ok(fs::rename(self.path("new"), self.path(name))?)
    }

    /// Has a feed written that long ago.
    pub(crate) fn age(&self, name: &str, age: Duration) -> Result<()> {
        let file = fs::File::options().append(true).open(self.path(name))?;
        Ok(file.set_modified(SystemTime::now() - age)?)
    }

    /// A configuration that blocks the list `bad` of a feed, about which it says more.
    pub(crate) fn configuration(&self, name: &str, more: &str) -> String {
        let path = self.path(name);
        format!(
            "lists: [{{name: bad, file: {}{more}}}]\nblock: bad\n{LIMIT}",
            path.display()
        )
    }
}

impl Feeding {
    /// With that in the feed, which was written so long ago.
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

    /// What is told of the one list.
    pub(crate) fn list(&self) -> Result<Value> {
        let output = succeed(self.pinned.with_pins("lists").arg("--json"))?;
        let lists: Value = serde_json::from_slice(&output.stdout)?;
        Ok(lists[0].clone())
    }

    pub(crate) fn is_blocked(&self, address: &str) -> Result<bool> {
        let explanation = self.pinned.limiter.explain(address)?;
        Ok(explanation["lists"]["standing"]["blocked"] == "all")
    }

    pub(crate) fn wait_until_blocked(&self, address: &str, blocked: bool) -> Result<()> {
        wait_for(|| Ok(self.is_blocked(address)? == blocked))
    }

    pub(crate) fn generation(&self) -> Result<u64> {
        let generation = self.pinned.limiter.status()?["policy"]["generation"].as_u64();
        generation.context("a policy is in force")
    }

    /// That the log says it so many times; it may be about to.
    #[track_caller]
    pub(crate) fn assert_logged(&self, times: usize, pattern: &str) -> Result<()> {
        let count = || -> Result<usize> {
            let log = self.pinned.limiter.log()?;
            Ok(log.lines().filter(|line| matches(line, pattern)).count())
        };
        wait_for(|| Ok(count()? >= times))
            .and_then(|()| {
                ensure!(count()? == times, "it is there {} times", count()?);
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

/// One source sends as it may, the other is on the list every now and then. The first loses
/// nothing, and of the second each packet either passes or is dropped for the list; and nobody
/// else's are.
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
                // Somebody is about to edit it: feeds are of no concern to that.
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
    // The limit and its buckets have not been touched.
    ensure!(status["limits"]["PacketsPerIPAddress"]["passed_packets"] == good + bad);
    ensure!(pinned.remaining("PacketsPerIPAddress", GOOD)? == 1_000_000 - good);
    ensure!(feeding.generation()? == 4);
    Ok(())
}

/// By a rename, in place, and by nothing but another time.
#[test]
fn ways_to_write_a_feed() -> Result<()> {
    let feeding = Feeding::start("192.0.2.0/24\n", hours(5), ", max-age: 24h", &[])?;
    let age = || -> Result<f64> {
        let ns = feeding.list()?["age_ns"].as_f64();
        Ok(ns.context("it has an age")? / 3.6e12)
    };
    ensure!((5.0..5.1).contains(&age()?));
    feeding.replace("192.0.2.0/24\n10.77.0.3\n")?;
    feeding.wait_until_blocked(BAD, true)?;
    feeding.assert_logged(1, "…INFO…list bad has 2 prefixes, where it had 1")?;
    ensure!(age()? < 0.1);
    fs::write(feeding.feeds.path("bad"), "192.0.2.0/24\n")?;
    feeding.wait_until_blocked(BAD, false)?;
    ensure!(feeding.generation()? == 3);

    // Nothing else of what it has, nothing else in force.
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
        let told = format!("  NOT RENEWED: {path} {refused}; what it held before is in force");
        ensure!(
            shown.lines().any(|line| matches(line, &told))
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
    feeding.assert_logged(1, "…WARN…list bad: …:21: invalid entry 'nonsense'…")?;
    ensure!(feeding.list()?["state"] == "ok" && feeding.list()?["bad_lines"] == 1);
    let server = &feeding.pinned.pair.server;
    assert_metric(server, r#"limiter_list_refused{list="bad"} 0"#)?;
    assert_metric(server, r#"limiter_list_bad_lines{list="bad"} 1"#)
}

/// Its prefixes leave when it is stale, without any change of the file, and come back with one.
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
        "…WARN…list bad: … is stale: …; what it holds is no longer on the list",
    )?;
    let shown = feeding.pinned.limiter.show(&["status"])?;
    let told = "  STALE: … old, and not in force";
    ensure!(shown.lines().any(|line| matches(line, told)), "{shown}");
    // So it is found by the next daemon.
    feeding.pinned.limiter.show(&["reload"])?;
    ensure!(!feeding.is_blocked(BAD)?);

    feeding.feeds.age("bad", hours(1))?;
    feeding.wait_until_blocked(BAD, true)?;
    assert_metric(server, r#"limiter_list_stale{list="bad"} 0"#)?;
    feeding.assert_logged(1, "…INFO…list bad: … is as it should be again")
}

/// Whether it was when it was read, or has been since.
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
        "…WARN…list bad: … is stale: …; what it holds is still on the list",
    )?;
    feeding.pinned.limiter.show(&["reload"])?;
    feeding.assert_logged(1, "…WARN…list bad: … is stale: …")?;
    let shown = feeding.pinned.limiter.show(&["lists"])?;
    let told = "STALE: … is 1.04 days old, and in force";
    ensure!(shown.lines().any(|line| matches(line, told)), "{shown}");
    Ok(())
}

/// Somebody who does not say that the policy is right may be locked out: feeds change nothing until
/// then. They are not asked for feeds.
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

/// What is reverted to has the feeds of today, of files that nobody has watched meanwhile.
#[test]
fn feeds_of_a_policy_that_is_reverted_to() -> Result<()> {
    let feeding = Feeding::start("192.0.2.1\n", hours(0), "", &["--confirm", "8s"])?;
    feeding.pinned.limiter.show(&["confirm"])?;
    feeding.pinned.reload(LIMIT)?;
    ensure!(feeding.list()?.is_null());
    feeding.replace("10.77.0.3\n")?;
    feeding.wait_until_blocked(BAD, true)?;
    // Policy 1 was in force again, and then it was given other lists.
    ensure!(feeding.generation()? == 2);
    feeding.replace("192.0.2.1\n")?;
    feeding.wait_until_blocked(BAD, false)
}

/// Where there are pins, they have what the file had.
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
        "…WARN…list bad: … cannot be read: …; the list still has what it held before",
    )?;
    feeding.replace("192.0.2.1\n")?;
    feeding.wait_until_blocked(BAD, false)?;

    // Without, there is nothing to go on with.
    ensure!(feeding.pinned.limiter.terminate()?.success());
    succeed(&mut feeding.pinned.with_pins("detach"))?;
    fs::remove_file(&path)?;
    assert_fails(
        &mut feeding.pinned.limiter.run(),
        &["…limiter.yaml:1:…: the file '…' cannot be read: …"],
    )
}

/// It is limited under its old name until the next reload, whatever feeds do.
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

const CONFIGURATION: &str = "
lists:
  - {name: us, cidr: [192.0.2.0/28, '2001:db8::/64']}
  - {name: drop, cidr: [192.0.2.0/24, 198.51.100.1], file: feed}
  - {name: scanners, cidr: 198.51.100.7}
exclude: us
block: drop
limits:
  Web: {id: ipAddress, cost: packets, burst: 5, count: 1, period: 1s, block: scanners}
";

/// What a file with lists says of an address, without anything that runs.
#[track_caller]
fn check_lists(arguments: &[&str], expected: &str) -> Result<()> {
    let feeds = Feeds::new()?;
    fs::write(feeds.path("limiter.yaml"), CONFIGURATION)?;
    fs::write(feeds.path("feed"), "203.0.113.0/24 ; SBL1\n")?;
    let mut command = std::process::Command::new(BINARY);
    let command = command
        .arg("lists")
        .args(arguments)
        .arg("-c")
        .arg(feeds.path("limiter.yaml"));
    let output = succeed(command)?;
    let told = text(&output.stdout)?;
    // How wide columns are is a matter of where the files are.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let same = told.lines().count() == expected.lines().count()
        && told
            .lines()
            .zip(expected.lines())
            .all(|(line, pattern)| matches(&words(line), &words(pattern)));
    ensure!(same, "{arguments:?} says\n{told}");
    Ok(())
}

#[test]
fn lists_of_a_configuration() -> Result<()> {
    check_lists(
        &[],
        "list      IPv4  IPv6  used by       files       age  max-age  bad lines  state
us           1     1  exclude       –             –        –          0  ok
drop         3     0  block         …/feed  …        –          0  ok
scanners     1     0  limits.Web.block  –             –        –          0  ok",
    )?;
    check_lists(&["test", "203.0.114.1"], "203.0.114.1 is on no list")?;
    check_lists(
        &["test", "203.0.113.9"],
        "203.0.113.9 is on 1 list
list  has             used by
drop  203.0.113.0/24  block
blocked by list drop: every packet is dropped",
    )?;
    check_lists(
        &["test", "192.0.2.0/24"],
        "192.0.2.0/24 is on 2 lists
list  has                           used by
us    192.0.2.0/28, a part of it    exclude
drop  192.0.2.0/24                  block
some of it is excluded by list us: never limited, blocked or banned
some of it is blocked by list drop: every packet is dropped",
    )?;
    check_lists(
        &["test", "198.51.100.7"],
        "198.51.100.7 is on 1 list
list      has           used by
scanners  198.51.100.7  limits.Web.block
blocked by Web: it blocks list scanners; every packet that it counts is dropped",
    )
}

#[test]
fn lists_that_cannot_be_tested() -> Result<()> {
    for (asked, told) in [
        (
            "192.0.2.7/24",
            "it has bits behind the prefix: 192.0.2.0/24 is meant",
        ),
        (
            "example.com",
            "expected an address, such as 192.0.2.1, or a prefix, …",
        ),
    ] {
        let output = std::process::Command::new(BINARY)
            .args(["lists", "test", asked])
            .output()?;
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr)?;
        let first = said.lines().next().unwrap_or_default();
        let pattern = format!("error: invalid value '{asked}' for '<ADDRESS|PREFIX>': {told}");
        ensure!(matches(first, &pattern), "{said}");
    }
    let scene = crate::Scene::new()?;
    let mut command = std::process::Command::new(BINARY);
    command.args(["lists", "--socket"]).arg(scene.socket());
    command.arg("--pin").arg(scene.path("nothing"));
    assert_fails(&mut command, &["no limiter is running …"])
}

#[test]
fn what_is_told_of_an_address_in_force() -> Result<()> {
    let configuration = CONFIGURATION.replace(", file: feed", "");
    let mut pinned = Pinned::start(&configuration)?;
    let told = |pinned: &Pinned, address: &str| -> Result<String> {
        let mut command = pinned.with_pins("explain");
        let output = succeed(command.arg(address))?;
        Ok(text(&output.stdout)?.trim_end().to_owned())
    };
    for round in ["with a daemon", "with pins alone"] {
        let explained = told(&pinned, "192.0.2.7")?;
        let excluded = "192.0.2.7: excluded by list us: never limited, blocked or banned";
        ensure!(explained == excluded, "{round}: {explained}");
        let explained = told(&pinned, "192.0.2.77")?;
        let blocked = "192.0.2.77: blocked by list drop: every packet is dropped";
        ensure!(explained == blocked, "{round}: {explained}");
        let explained = told(&pinned, "198.51.100.7")?;
        let by_limit = "198.51.100.7\nblocked by Web: it blocks list scanners; every packet that it \
                        counts is dropped\nlimit  mode …";
        ensure!(matches(&explained, by_limit), "{round}: {explained}");

        let mut command = pinned
            .limiter
            .command(&["lists", "test", "192.0.2.77", "--json"]);
        let output = succeed(command.arg("--pin").arg(pinned.pins.path()))?;
        let tested: Value = serde_json::from_slice(&output.stdout)?;
        let expected = json!({
            "asked": "192.0.2.77",
            "lists": [{
                "list": "drop",
                "extent": "all",
                "prefix": "192.0.2.0/24",
                "more": 0,
                "used_by": [{"purpose": "block", "limit": null}],
            }],
            "standing": {"excluded": null, "blocked": "all"},
            "limits": [],
        });
        ensure!(tested == expected, "{round}: {tested:#}");
        if round == "with a daemon" {
            ensure!(pinned.limiter.terminate()?.success());
        }
    }
    Ok(())
}

/// Who operates the machine is not to be locked out by a list.
#[test]
fn a_list_that_has_the_gateway() -> Result<()> {
    let feeds = Feeds::new()?;
    feeds.replace("bad", "10.77.0.0/24\n")?;
    let pair = crate::pair()?;
    pair.server.ip(&["route", "add", "default", "via", GOOD])?;
    fs::write(feeds.path("limiter.yaml"), feeds.configuration("bad", ""))?;
    let output = succeed(
        pair.server
            .command(Path::new(BINARY))
            .arg("check")
            .arg(feeds.path("limiter.yaml")),
    )?;
    let told =
        "warning: list bad has 10.77.0.0/24, so it would block the default gateway 10.77.0.2: …";
    let said = text(&output.stderr)?;
    ensure!(said.lines().any(|line| matches(line, told)), "{said}");
    Ok(())
}
