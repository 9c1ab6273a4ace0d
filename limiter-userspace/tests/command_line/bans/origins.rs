//! Bans of one prefix by several origins.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::{Limiter, SERVER_INTERFACE};

use super::{CLIENT, NEIGHBOUR, is_banned, listed, pair, reported, start};
use crate::{
    BINARY, GOOD, assert_fails,
    pinned::{Pinned, assert_metric},
    streams::feed,
    succeed, text,
};

/// Returns the client's bans by these origins, in the form of `listed`.
fn of_client(origins: &[&str]) -> Vec<(String, serde_json::Value)> {
    let bans = origins.iter();
    bans.map(|origin| (format!("{CLIENT}/32"), json!(origin)))
        .collect()
}

#[test]
fn the_longest_holds_and_each_lifts_its_own() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    let first_line = |arguments: &[&str]| {
        let shown = limiter.show(arguments)?;
        anyhow::Ok(shown.lines().next().unwrap_or_default().to_owned())
    };
    let ban = ["ban", CLIENT, "--for"];
    let shown = first_line(
        &[
            &ban[..],
            &["1h", "--origin", "fail2ban", "--reason", "sshd"],
        ]
        .concat(),
    )?;
    assert_eq!(shown, format!("{CLIENT} is banned for 1 h"));
    let shown = first_line(&[&ban[..], &["10m"]].concat())?;
    let longer = "; the ban by fail2ban holds longer";
    assert_eq!(shown, format!("{CLIENT} is banned for 10 min{longer}"));
    let shown = first_line(&[&ban[..], &["20m", "--origin", "night-shift"]].concat())?;
    assert_eq!(shown, format!("{CLIENT} is banned for 20 min{longer}"));

    let all = limiter.show(&["bans", "--json"])?;
    let origins = of_client(&["fail2ban", "night-shift", "operator"]);
    assert_eq!(reported(&all, "origin")?, origins);
    let one = limiter.show(&["bans", "--json", "--origin", "night-shift"])?;
    assert_eq!(reported(&one, "origin")?, of_client(&["night-shift"]));
    let explained = limiter.show(&["explain", CLIENT])?;
    let line = format!("BANNED by fail2ban as {CLIENT}, for ");
    ensure!(explained.contains(&line), "{explained}");

    let shown = limiter.show(&["unban", CLIENT, "--origin", "fail2ban"])?;
    assert_eq!(
        shown,
        format!(
            "the ban of {CLIENT} is lifted: fail2ban; it is still banned by night-shift, operator\n"
        )
    );
    let shown = limiter.show(&["unban", CLIENT, "--origin", "fail2ban"])?;
    assert_eq!(
        shown,
        format!("{CLIENT} had no ban by fail2ban; it is still banned by night-shift, operator\n")
    );
    ensure!(is_banned(&pair, &limiter, CLIENT)?);
    let shown = limiter.show(&["unban", CLIENT])?;
    assert_eq!(
        shown,
        format!("the bans of {CLIENT} are lifted: night-shift, operator\n")
    );
    ensure!(!is_banned(&pair, &limiter, CLIENT)?);
    assert_fails(
        &mut limiter.command(&["ban", CLIENT, "--origin", "automatic"]),
        &[&format!(
            "{CLIENT} is not banned: only limits ban as `automatic`: give another --origin"
        )],
    )?;
    ensure!(!is_banned(&pair, &limiter, CLIENT)?);
    Ok(())
}

#[test]
fn a_stream_lifts_what_its_origin_banned() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    limiter.show(&["ban", CLIENT, NEIGHBOUR])?;
    let input = format!("{CLIENT} 1h\n-{CLIENT}\n-{NEIGHBOUR}\n");
    let mut stream = limiter.command(&["ban", "--stdin", "--origin", "ours"]);
    let output = feed(&mut stream, &input)?;
    let shown = text(&output.stdout)?;
    let expected = "banned 1, lifted 1, refused 0, bad 0, not banned before 1";
    ensure!(shown.starts_with(expected), "{shown}");
    let decision = json!({
        "type": "ban", "scope": "Ip", "value": CLIENT, "duration": "1h", "scenario": "ssh-bf",
    });
    feed(
        &mut limiter.command(&["ban", "--stdin"]),
        &json!([decision]).to_string(),
    )?;
    let bans = limiter.show(&["bans", CLIENT, "--json"])?;
    assert_eq!(
        reported(&bans, "origin")?,
        of_client(&["operator", "crowdsec"])
    );
    let shown = limiter.show(&["unban", "--all", "--origin", "operator"])?;
    assert_eq!(shown, "2 bans lifted\n");
    ensure!(is_banned(&pair, &limiter, CLIENT)?);
    ensure!(!is_banned(&pair, &limiter, NEIGHBOUR)?);
    Ok(())
}

/// With a daemon and without, after a kill and a change of the room.
#[test]
fn pins_and_reloads_keep_origins() -> Result<()> {
    let room_for = |capacity: u32| format!("bans: {{capacity: {capacity}}}\n{GOOD}");
    let mut pinned = Pinned::start(&room_for(1024))?;
    let ban = |pinned: &Pinned, origin: &str, length: &str| {
        let mut ban = pinned.with_pins("ban");
        succeed(ban.args([CLIENT, "--origin", origin, "--for", length])).map(drop)
    };
    ban(&pinned, "fail2ban", "2h")?;
    ban(&pinned, "crowdsec", "3h")?;
    pinned.limiter.kill()?;
    ban(&pinned, "operator", "1h")?;
    pinned.limiter.restart()?;
    let all = of_client(&["crowdsec", "fail2ban", "operator"]);
    assert_eq!(listed(&pinned, "origin")?, all);
    pinned.reload(&room_for(2048))?;
    assert_eq!(listed(&pinned, "origin")?, all);
    assert_metric(
        &pinned.pair.server,
        "limiter_bans{family=\"ipv4\",origin=\"crowdsec\"} 1",
    )?;
    ensure!(pinned.limiter.terminate()?.success());
    let mut unban = pinned.with_pins("unban");
    succeed(unban.args(["--all", "--origin", "crowdsec"]))?;
    assert_eq!(
        listed(&pinned, "origin")?,
        of_client(&["fail2ban", "operator"])
    );
    ensure!(is_banned(&pinned.pair, &pinned.limiter, CLIENT)?);
    Ok(())
}

#[test]
fn the_state_file_keeps_origins() -> Result<()> {
    let (pair, directory) = (pair()?, tempfile::tempdir()?);
    let state = directory.path().join("state");
    let configuration = format!("state: {}\n{GOOD}", state.display());
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let binary = Path::new(BINARY);
    let mut limiter = Limiter::start(binary, &pair.server, &configuration, &arguments)?;
    for (origin, length) in [("operator", "1h"), ("fail2ban", "2h")] {
        limiter.show(&["ban", CLIENT, "--for", length, "--origin", origin])?;
    }
    ensure!(limiter.terminate()?.success());
    limiter.restart()?;
    let bans = limiter.show(&["bans", "--json"])?;
    assert_eq!(
        reported(&bans, "origin")?,
        of_client(&["fail2ban", "operator"])
    );
    limiter.show(&["unban", CLIENT, "--origin", "fail2ban"])?;
    ensure!(is_banned(&pair, &limiter, CLIENT)?);
    limiter.show(&["unban", CLIENT, "--origin", "operator"])?;
    ensure!(!is_banned(&pair, &limiter, CLIENT)?);
    Ok(())
}
