//! The influence that a feed's owner has, and the changes that the daemon refuses.

use std::{fmt::Write as _, fs};

use anyhow::{Context as _, Result, ensure};
use limiter_policy::lists::MOST_PREFIXES;
use testbed::SERVER_INTERFACE;

use crate::{
    assert_fails,
    lists::{Feeding, Feeds, hours},
    matches,
    pinned::Pinned,
    wait_for,
};

const BAD: &str = "10.77.0.3";

const SMALL: &str = "172.16.0.0/13\n";

/// More than twice as large as `SMALL`.
const LARGE: &str = "10.0.0.0/8\n";

/// As printed by `sha256sum`.
const DIGEST_OF_LARGE: &str = "9b4e456139331a2ec582ecfbc9ccf436bd32b34742440d649f0f086b0ea84df0";

impl Feeding {
    /// Waits until the feed is held back with this digest.
    fn wait_until_held(&self, digest: &str) -> Result<()> {
        wait_for(|| Ok(self.list()?["files"][0]["held"] == digest))
    }
}

#[test]
fn a_feed_that_grows_too_fast_waits_until_it_is_accepted() -> Result<()> {
    let feeding = Feeding::start(SMALL, hours(0), "", &[])?;
    let limiter = &feeding.pinned.limiter;
    let accept = |arguments: &[&str]| limiter.command(&[&["lists", "accept"], arguments].concat());
    assert_fails(
        &mut accept(&["bad"]),
        &["list bad has nothing to accept: none of its files is held back"],
    )?;
    assert_fails(
        &mut accept(&["good"]),
        &["there is no list 'good' in force: see `limiter lists`"],
    )?;

    feeding.replace(LARGE)?;
    feeding.wait_until_held(DIGEST_OF_LARGE)?;
    ensure!(!feeding.is_blocked(BAD)? && feeding.generation()? == 1);
    let why = format!(
        "is held back: it would grow from 524 288 to 16 777 216 IPv4 addresses, more than 2-fold \
         within a day; if this is right, accept it with `limiter lists accept bad --digest \
         {DIGEST_OF_LARGE}`"
    );
    feeding.assert_logged(1, &format!("…WARN…list bad: …{why}…"))?;
    for command in ["status", "lists"] {
        let shown = limiter.show(&[command])?;
        let reported = format!("…NOT RENEWED: … {why}; its previous content stays in force");
        ensure!(
            shown.lines().any(|line| matches(line, &reported)),
            "{shown}"
        );
    }

    // The digest names a content that has been replaced since.
    assert_fails(
        &mut accept(&["bad", "--digest", "0123456789abcdef"]),
        &[&format!(
            "list bad holds back other content than that: check it, and accept it with --digest \
             {DIGEST_OF_LARGE}"
        )],
    )?;
    ensure!(!feeding.is_blocked(BAD)? && feeding.generation()? == 1);

    let shown = limiter.show(&["lists", "accept", "bad", "--digest", &DIGEST_OF_LARGE[..12]])?;
    ensure!(
        matches(shown.trim_end(), "… is in force in list bad"),
        "{shown}"
    );
    ensure!(feeding.is_blocked(BAD)? && feeding.generation()? == 2);
    ensure!(feeding.list()?["state"] == "ok" && feeding.list()?["files"][0]["held"].is_null());
    feeding.assert_logged(1, "…INFO…list bad: … was accepted and is in force")?;

    // The feed may grow without approval from the accepted size.
    feeding.replace("10.0.0.0/8\n11.0.0.0/8\n")?;
    wait_for(|| Ok(feeding.generation()? == 3))
}

/// A program that writes the file in place was stopped half-way. After a restart, the daemon knows the former size of
/// this file, apart from the list's other files.
#[test]
fn a_feed_that_is_half_written_waits_until_it_is_accepted() -> Result<()> {
    let lines = |number: u8| {
        let mut text = String::new();
        for last in (0..number).step_by(2) {
            _ = writeln!(text, "10.77.0.{last}\n10.78.0.{last}");
        }
        text
    };
    let mut feeding = Feeding::start(&lines(200), hours(0), "", &[])?;
    fs::write(feeding.feeds.path("bad"), lines(100))?;
    let held = "is held back: it would shrink from 200 to 100 prefixes, by more than 30%; …";
    let is_held = |feeding: &Feeding| -> Result<bool> {
        let kept = feeding.list()?["files"][0]["kept_old"].clone();
        Ok(kept.as_str().is_some_and(|kept| matches(kept, held)))
    };
    wait_for(|| is_held(&feeding))?;
    feeding.assert_logged(1, &format!("…WARN…list bad: … {held}"))?;
    feeding.pinned.limiter.kill()?;
    feeding.pinned.restart_with(&[])?;
    wait_for(|| is_held(&feeding))?;
    ensure!(feeding.is_blocked("10.78.0.198")?);
    feeding.pinned.limiter.show(&["lists", "accept", "bad"])?;
    ensure!(!feeding.is_blocked("10.78.0.198")? && feeding.is_blocked("10.78.0.98")?);
    ensure!(feeding.list()?["state"] == "ok");
    Ok(())
}

/// At acceptance, the digest must match the file's current content.
#[test]
fn a_feed_that_is_swapped_after_it_was_looked_at() -> Result<()> {
    let feeding = Feeding::start(SMALL, hours(0), "", &[])?;
    let limiter = &feeding.pinned.limiter;
    feeding.replace(LARGE)?;
    feeding.wait_until_held(DIGEST_OF_LARGE)?;
    // The command comes before the daemon's watch notices the change.
    fs::write(feeding.feeds.path("bad"), "10.0.0.0/8\n172.0.0.0/8\n")?;
    let shown = limiter
        .command(&["lists", "accept", "bad", "--digest", DIGEST_OF_LARGE])
        .output()?;
    ensure!(!shown.status.success(), "{shown:?}");
    ensure!(!feeding.is_blocked(BAD)? && feeding.generation()? == 1);
    wait_for(|| Ok(feeding.list()?["files"][0]["held"] != DIGEST_OF_LARGE))?;
    ensure!(!feeding.is_blocked(BAD)? && feeding.generation()? == 1);
    Ok(())
}

/// Restarts and reloads remember the size from which a feed may grow.
#[test]
fn a_feed_that_is_held_back_stays_so() -> Result<()> {
    let mut feeding = Feeding::start(SMALL, hours(0), "", &[])?;
    feeding.replace(LARGE)?;
    feeding.wait_until_held(DIGEST_OF_LARGE)?;
    feeding.pinned.limiter.show(&["reload"])?;
    ensure!(!feeding.is_blocked(BAD)?);
    feeding.wait_until_held(DIGEST_OF_LARGE)?;
    feeding.pinned.limiter.kill()?;
    assert_fails(
        &mut feeding.pinned.limiter.command(&["lists", "accept", "bad"]),
        &["no limiter is running…"],
    )?;
    feeding.pinned.restart_with(&[])?;
    ensure!(!feeding.is_blocked(BAD)?);
    feeding.wait_until_held(DIGEST_OF_LARGE)?;
    feeding.pinned.limiter.show(&["lists", "accept", "bad"])?;
    ensure!(feeding.is_blocked(BAD)?);
    Ok(())
}

#[test]
fn a_policy_that_waits_to_be_confirmed_comes_first() -> Result<()> {
    let feeding = Feeding::start(SMALL, hours(0), "", &["--confirm", "10m"])?;
    let limiter = &feeding.pinned.limiter;
    limiter.show(&["confirm"])?;
    feeding.replace(LARGE)?;
    feeding.wait_until_held(DIGEST_OF_LARGE)?;
    limiter.show(&["reload"])?;
    assert_fails(
        &mut limiter.command(&["lists", "accept", "bad"]),
        &[
            "the policy in force waits to be confirmed: run `limiter confirm` first, or wait until \
           it is reverted",
        ],
    )?;
    limiter.show(&["confirm"])?;
    limiter.show(&["lists", "accept", "bad"])?;
    ensure!(feeding.is_blocked(BAD)?);
    Ok(())
}

/// A feed may name the operators' gateway instead of another address: the daemon accepts it and logs a warning.
#[test]
fn a_feed_that_blocks_the_gateway_is_in_force_and_told() -> Result<()> {
    const GATEWAY: &str = "10.77.0.254";
    let feeding = Feeding::start("192.0.2.1\n", hours(0), "", &[])?;
    let route = ["route", "add", "default", "via", GATEWAY];
    feeding.pinned.pair.server.ip(&route)?;
    feeding.replace("10.77.0.254\n")?;
    feeding.wait_until_blocked(GATEWAY, true)?;
    feeding.assert_logged(
        1,
        "…WARN…list bad has 10.77.0.254/32, so it would block the default gateway 10.77.0.254: \
         take it off the list; …",
    )
}

/// A feed cannot block or exclude all addresses, or a quarter of them.
#[test]
fn a_feed_that_covers_too_much_changes_nothing() -> Result<()> {
    let feeding = Feeding::start(SMALL, hours(0), ", max-growth: off", &[])?;
    let refused = |text: &str, why: &str| -> Result<()> {
        feeding.replace(text)?;
        wait_for(|| {
            let kept = feeding.list()?["files"][0]["kept_old"].clone();
            Ok(kept.as_str().is_some_and(|kept| matches(kept, why)))
        })?;
        ensure!(!feeding.is_blocked(BAD)? && feeding.generation()? == 1);
        Ok(())
    };
    refused(
        "0.0.0.0/1\n128.0.0.0/1\n",
        "is refused: it covers every IPv4 address: …",
    )?;
    refused(
        "0.0.0.0/2\n",
        "is refused: it covers 25% of all IPv4 addresses, …",
    )?;
    refused(
        "2000::/3\n",
        "is refused: it covers 100% of the IPv6 addresses …",
    )?;
    // An operator cannot accept it either.
    assert_fails(
        &mut feeding.pinned.limiter.command(&["lists", "accept", "bad"]),
        &["list bad has nothing to accept: none of its files is held back"],
    )?;
    feeding.replace("0.0.0.0/3\n")?;
    feeding.wait_until_blocked(BAD, true)
}

/// The largest feed allowed, in prefixes and in bytes: read first, and then replaced by another one of that size.
#[test]
fn the_largest_feed_takes_less_than_512_mib() -> Result<()> {
    const MIB: u64 = 1024 * 1024;
    let largest = {
        let mut text = String::new();
        for number in 0..MOST_PREFIXES {
            let (first, second, last) = (
                number >> 16,
                number & 0xffff,
                number.wrapping_mul(40_503) & 0xfffe,
            );
            writeln!(text, "2001:{first:x}:{second:x}::{last:x}")?;
        }
        // Comments fill the rest, in lines of allowed length.
        let line = format!("#{}\n", "x".repeat(1022));
        while text.len() as u64 + 1024 <= 128 * MIB {
            text += &line;
        }
        text
    };
    let feeds = Feeds::new()?;
    fs::write(feeds.path("bad"), &largest)?;
    let pinned = Pinned::start_with(&feeds.configuration("bad", ""), &["-i", SERVER_INTERFACE])?;
    let assert_bounded = |generation: u64| -> Result<()> {
        let status = fs::read_to_string(format!("/proc/{}/status", pinned.limiter.id()))?;
        let mut lines = status.lines();
        let peak = lines.find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        let peak: u64 = peak.context("no VmHWM in /proc")?.parse()?;
        let status = pinned.limiter.status()?;
        let lists = &status["lists"];
        ensure!(lists[0]["ipv6_prefixes"] == MOST_PREFIXES, "{lists:#}");
        ensure!(status["policy"]["generation"] == generation, "{status:#}");
        ensure!(peak < 512 * 1024, "policy {generation}: {peak} kB");
        Ok(())
    };
    assert_bounded(1)?;
    feeds.replace("bad", &largest.replace("2001:", "2003:"))?;
    pinned.limiter.wait_for_log("policy 2 is in force")?;
    assert_bounded(2)
}
