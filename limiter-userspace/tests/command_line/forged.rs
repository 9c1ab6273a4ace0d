//! Attackers who forge sources, against limits that ban.

use anyhow::{Context as _, Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{
    BINARY, GOOD, Scene, assert_fails, bans, pair,
    pinned::{Pinned, assert_metric, metrics},
    succeed, text, wait_for,
};

const LIMIT: &str = "PacketsPerIPAddress: {burst: 10, count: 10, period: 1s,
    ban: {after: 100 drops, within: 1s, for: 10m}}";

fn start(pair: &Pair, configuration: &str) -> Result<Limiter> {
    let arguments = ["-i", SERVER_INTERFACE];
    Limiter::start(BINARY.as_ref(), &pair.server, configuration, &arguments)
}

/// Sends more packets of these sources than the limit passes.
fn forge(pair: &Pair, sources: impl IntoIterator<Item = String>) -> Result<()> {
    forge_each(pair, sources, 130)
}

/// Sends this many packets from each source.
fn forge_each(
    pair: &Pair,
    sources: impl IntoIterator<Item = String>,
    packets: usize,
) -> Result<()> {
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    for source in sources {
        let frame = Frame::new(source.parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
        sender.send_frames(&vec![frame; packets])?;
    }
    Ok(())
}

/// Returns the prefixes banned by limits or by operators.
fn banned(limiter: &Limiter, automatically: bool) -> Result<Vec<String>> {
    let bans = bans(limiter)?;
    let bans = bans
        .iter()
        .filter(|ban| ban["limit"].is_null() != automatically);
    Ok(bans
        .filter_map(|ban| Some(ban["prefix"].as_str()?.to_owned()))
        .collect())
}

#[test]
fn sources_under_never_ban_are_limited_all_the_same() -> Result<()> {
    let pair = pair()?;
    let lists = "lists: [{name: partners, cidr: [10.77.0.64/28]}]\nnever-ban: partners\n";
    let limiter = start(&pair, &format!("{lists}limits:\n  {LIMIT}\n"))?;
    let partner = || ["10.77.0.65".to_owned()];
    // Drops before the daemon's first poll do not count.
    wait_for(|| {
        forge(&pair, partner())?;
        forge(&pair, ["10.77.0.9".to_owned()])?;
        Ok(banned(&limiter, true)? == ["10.77.0.9/32"])
    })?;
    let reported = "does not ban 10.77.0.65 for ";
    limiter.wait_for_log(reported)?;
    let why = "it is on the list partners, under `never-ban`";
    ensure!(limiter.log()?.contains(why), "{}", limiter.log()?);
    let offenders = limiter.offenders()?;
    ensure!(
        offenders.to_string().contains("\"10.77.0.65\""),
        "{offenders}"
    );

    let refused = format!("10.77.0.65 is not banned: {why}; --force bans it all the same");
    assert_fails(&mut limiter.command(&["ban", "10.77.0.65"]), &[&refused])?;
    let refused = "10.77.0.64/27 is not banned: 10.77.0.64/28 in it is on the list partners, under \
                   `never-ban`; --force bans it all the same";
    assert_fails(&mut limiter.command(&["ban", "10.77.0.64/27"]), &[refused])?;
    let shown = limiter.show(&["lists", "test", "10.77.0.65"])?;
    ensure!(
        shown.contains("never banned: on list partners; limits still apply"),
        "{shown}"
    );
    succeed(&mut limiter.command(&["ban", "10.77.0.65", "--force"]))?;
    Ok(())
}

/// Forged packets spend only the victim's tokens, with the rate of its override.
#[test]
fn a_forger_spends_the_budget_of_its_victim() -> Result<()> {
    let rate = "count: 1, period: 1h";
    let pinned = Pinned::start(&format!(
        "limits: {{PacketsPerIPAddress: {{burst: 10, {rate}}}}}\n\
         overrides: {{PacketsPerIPAddress:10.77.0.8: {{burst: 1000, {rate}}}}}\n"
    ))?;
    pinned.send("10.77.0.8", 100)?;
    pinned.send("10.77.0.9", 100)?;
    for (source, left) in [("10.77.0.8", 900), ("10.77.0.9", 0), ("10.77.0.10", 10)] {
        let found = pinned.remaining("PacketsPerIPAddress", source)?;
        assert_eq!(found, left, "{source}");
    }
    Ok(())
}

/// A reload frees a source that was banned before the operator listed it.
#[test]
fn a_reload_lifts_bans_of_sources_under_never_ban() -> Result<()> {
    let pair = pair()?;
    let limits = format!("limits:\n  {LIMIT}\n");
    let limiter = start(&pair, &limits)?;
    wait_for(|| {
        forge(&pair, ["10.77.0.9".to_owned(), "10.77.0.10".to_owned()])?;
        Ok(banned(&limiter, true)?.len() == 2)
    })?;
    succeed(&mut limiter.command(&["ban", "10.77.0.11"]))?;
    let lists = "lists: [{name: partners, cidr: [10.77.0.9, 10.77.0.11]}]\nnever-ban: partners\n";
    limiter.configure(&format!("{lists}{limits}"))?;
    limiter.show(&["reload"])?;
    wait_for(|| Ok(banned(&limiter, true)? == ["10.77.0.10/32"]))?;
    // The operator's own ban holds.
    assert_eq!(banned(&limiter, false)?, ["10.77.0.11/32"]);
    Ok(())
}

/// Bans caused by forged packets never take the room for an operator's bans. Here operators fill most of the room
/// themselves, because an unoptimised daemon pauses for most of a minute after that many automatic bans.
#[test]
fn forged_bans_leave_room_for_those_by_hand() -> Result<()> {
    const QUICK: &str = "bans: {capacity: 1024}\nlimits: {PacketsPerIPAddress: {burst: 1, count: 1, \
                         period: 1s, ban: {after: 5, within: 10s, for: 10m}}}\n";
    let pair = pair()?;
    let limiter = start(&pair, QUICK)?;
    let operators = |from: u32, to: u32| {
        let addresses = (from..to).map(|last| format!("192.0.{}.{}", last / 250, last % 250 + 1));
        let mut arguments = vec!["ban".to_owned()];
        arguments.extend(addresses);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        limiter.show(&arguments)
    };
    let refused = || -> Result<u64> {
        let head =
            "limiter_automatic_bans_total{limit=\"PacketsPerIPAddress\",outcome=\"refused\"} ";
        let reported = metrics(&pair.server)?;
        let number = reported.lines().find_map(|line| line.strip_prefix(head));
        Ok(number.with_context(|| format!("no {head}"))?.parse()?)
    };
    let gives_way = "; to make room, the automatic ban of 10.78.";
    let shown = operators(0, 900)?;
    ensure!(!shown.contains(gives_way), "{shown}");

    forge_each(&pair, (1..=200).map(|last| format!("10.78.0.{last}")), 20)?;
    wait_for(|| Ok(banned(&limiter, true)?.len() == 124))?;
    wait_for(|| Ok(refused()? > 0))?;
    // The log sums the refused bans up.
    limiter.wait_for_log("of them refused: see `limiter bans`")?;
    let shown = operators(900, 944)?;
    assert_eq!(shown.matches(gives_way).count(), 44, "{shown}");
    assert_eq!(banned(&limiter, true)?.len(), 80);
    let metric =
        "limiter_bans_evicted_total{limit=\"PacketsPerIPAddress\",origin=\"automatic\"} 44";
    assert_metric(&pair.server, metric)?;
    let reported = "automatic bans were lifted for bans by hand (bans: 44)";
    ensure!(limiter.log()?.contains(reported), "{}", limiter.log()?);

    operators(944, 1_024)?;
    assert_eq!(banned(&limiter, true)?, [""; 0]);
    let full = "192.0.200.9 is not banned: there is no room for more than 1024 bans: raise `bans: \
                {capacity: …}`, or lift some";
    assert_fails(&mut limiter.command(&["ban", "192.0.200.9"]), &[full])?;
    // Forged sources displace no operator's ban.
    let before = refused()?;
    forge_each(&pair, (1..=10).map(|last| format!("10.79.0.{last}")), 20)?;
    wait_for(|| Ok(refused()? > before))?;
    assert_eq!(banned(&limiter, true)?, [""; 0]);
    assert_eq!(banned(&limiter, false)?.len(), 1_024);
    Ok(())
}

#[test]
fn check_says_that_sources_can_be_forged() -> Result<()> {
    let scene = Scene::new()?;
    let reported = |configuration: &str| -> Result<String> {
        std::fs::write(scene.path("limiter.yaml"), configuration)?;
        let mut command = std::process::Command::new(BINARY);
        let output = succeed(command.arg("check").arg(scene.path("limiter.yaml")))?;
        Ok(text(&output.stderr)?.to_owned())
    };
    let warned = reported(&format!("limits:\n  {LIMIT}\n"))?;
    let expected = "warning: limit PacketsPerIPAddress bans by sources that can be forged (it counts \
                    packets without a handshake): anybody who forges an address has it banned. Put \
                    those you cannot do without on a list under `never-ban`; or let the limit only \
                    drop (`ban: {…, mode: observe}`), and use `limiter ban` for sources that a \
                    server saw misbehave over an established connection. Against forged floods, a \
                    limit with id total and a `reserve` keeps known clients served without a ban";
    ensure!(warned.lines().any(|line| line == expected), "{warned}");
    ensure!(!reported(GOOD)?.contains("forged"));
    Ok(())
}
