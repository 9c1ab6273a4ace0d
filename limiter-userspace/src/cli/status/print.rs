//! The status as text.

use std::io::Write;

use limiter_common::reason::Reason;
use limiter_policy::{config::Scope, lists::ListStatus};
use limiter_protocol::{
    ConnectionsStatus, GuardStatus, InterfaceStatus, ServerNamesStatus, StandingStatus,
    StateStatus, Status,
};
use limiter_report::{
    capacity,
    health::why_detached,
    lists::list_warnings,
    numbers::{Subject, words},
    render::{count, counted, duration, table},
    sieves, standing,
};

use super::super::traffic::{LimitRow, limits_table};

fn print_interface(out: &mut impl Write, interface: &InterfaceStatus) -> anyhow::Result<()> {
    let name = &interface.name;
    if let Some(why) = why_detached(interface) {
        writeln!(out, "{name}: NOT attached: {why}")?;
        return Ok(());
    }
    if let (Some(mode), Some(since)) = (&interface.mode, interface.since) {
        writeln!(out, "{name}: attached in {mode} mode since {since:.0}")?;
    }
    if let Some(now) = &interface.renamed {
        writeln!(out, "  it is now called {now}")?;
    }
    if interface.elsewhere {
        writeln!(out, "  it is now in another network namespace")?;
    }
    if let Some(reason) = &interface.fell_back {
        writeln!(out, "  slow: the driver refused native mode ({reason})")?;
    }
    Ok(())
}

fn print_daemon(out: &mut impl Write, status: &Status) -> anyhow::Result<()> {
    if let Some(directory) = &status.pinned {
        writeln!(out, "pinned in {}", directory.display())?;
    }
    if let Some(path) = &status.lost_pin {
        writeln!(out, "PINS GONE: {} and perhaps others", path.display())?;
    }
    let Some(daemon) = &status.daemon else {
        writeln!(
            out,
            "NO DAEMON is running: the pinned policy is still enforced"
        )?;
        return Ok(());
    };
    if let Some(state) = &daemon.state {
        print_state(out, state)?;
    }
    print_guard(out, &daemon.guard)?;
    if let Some(reason) = &daemon.no_answers
        && status
            .limits
            .values()
            .any(|limit| !limit.answers.is_empty())
    {
        writeln!(out, "NOTHING IS ANSWERED: {reason}")?;
    }
    for (interface, warning) in &daemon.lost_answers {
        writeln!(out, "{interface}: {warning}")?;
    }
    for misfit in daemon.misfits.values().chain(daemon.unseen.values()) {
        writeln!(out, "{misfit}")?;
    }
    if let Some(error) = &daemon.secrets_error {
        writeln!(out, "OLD SECRETS CHECK DNS COOKIES: {error}")?;
    }
    for (limit, warning) in &daemon.syn_cookies {
        writeln!(out, "limit {limit}: {warning}")?;
    }
    if let Some(tracking) = &daemon.tracking {
        if let Some(error) = &tracking.error {
            writeln!(out, "FORWARDED NOT COUNTED: {error}")?;
        }
        if let Some(late) = &tracking.late {
            writeln!(out, "FORWARDED COUNTED ONCE A SECOND: {late}")?;
        }
    }
    let reloads = &daemon.reloads;
    if let Some(ns) = reloads.unconfirmed_for_ns {
        writeln!(
            out,
            "NOT CONFIRMED: reverted in {} unless you run {}",
            duration(ns),
            reloads.keeps()
        )?;
    }
    if let Some(last) = &reloads.last
        && let Some(error) = &last.error
    {
        writeln!(out, "LAST RELOAD FAILED at {:.0}: {error}", last.at)?;
    }
    Ok(())
}

/// Prints the outcomes of connections and QUIC flows under limits on server names.
fn print_server_names(out: &mut impl Write, names: &ServerNamesStatus) -> anyhow::Result<()> {
    writeln!(
        out,
        "server names: {} connections with one, {} without; {} segments that may say one not read\n\
         {} QUIC flows with one; {} datagrams that may say one not read\n",
        count(names.named),
        count(names.nameless.values().sum()),
        count(names.segments_lost.values().sum()),
        count(names.quic.named),
        count(names.quic.datagrams_lost.values().sum()),
    )?;
    Ok(())
}

pub(super) fn print(out: &mut impl Write, status: &Status) -> anyhow::Result<()> {
    for interface in &status.interfaces {
        print_interface(out, interface)?;
    }
    for pattern in status.daemon.iter().flat_map(|daemon| &daemon.unmatched) {
        writeln!(out, "{pattern}: waiting for an interface of such a name")?;
    }
    writeln!(
        out,
        "policy {}: {}, loaded {:.0}",
        status.policy.generation,
        words(status, Subject::Policy),
        status.policy.loaded_at,
    )?;
    print_daemon(out, status)?;
    let scope = match status.buckets.settings.scope {
        Scope::Host => "",
        Scope::Interface => " on each interface",
    };
    writeln!(
        out,
        "buckets: up to {} in the {} store{scope}, {}",
        count(status.buckets.settings.capacity.into()),
        status.buckets.settings.store.name(),
        words(status, Subject::Buckets),
    )?;
    writeln!(
        out,
        "bans: {} of up to {}",
        count(u64::from(status.bans.ipv4) + u64::from(status.bans.ipv6)),
        count(status.bans.settings.capacity.into()),
    )?;
    if status.bans.is_full() {
        writeln!(
            out,
            "  NO ROOM for more: raise `bans: {{capacity: …}}`, or lift some"
        )?;
    }
    for sieve in &status.sieves {
        writeln!(out, "{}", sieves::line(sieve))?;
    }
    for list in &status.lists {
        print_list(out, list)?;
    }
    writeln!(out)?;

    let limits: Vec<_> = status
        .limits
        .iter()
        .map(|(name, limit)| LimitRow {
            name: name.clone(),
            strategy: limit.strategy.clone(),
            mode: limit.mode,
            traffic: limit.into(),
        })
        .collect();
    if !limits.is_empty() {
        // A policy may have only lists.
        writeln!(out, "{}\n", limits_table(&limits))?;
    }

    print_automatic(out, status)?;
    print_answers(out, status)?;
    if let Some(standing) = &status.standing {
        print_standing(out, standing)?;
    }

    if let Some(connections) = &status.connections {
        print_connections(out, connections)?;
        print_open(out, status)?;
        print_queues(out, status)?;
    }

    if let Some(names) = &status.server_names {
        print_server_names(out, names)?;
    }

    let malformed = status.policy.malformed;
    // In the order of the table of reasons, without reasons that never occurred.
    let reasons = Reason::ALL.iter().filter_map(|reason| {
        let packets = status
            .reasons
            .get(reason.name())
            .filter(|packets| **packets > 0)?;
        Some([
            reason.action(malformed).name().to_owned(),
            reason.name().to_owned(),
            count(*packets),
            reason.meaning().to_owned(),
        ])
    });
    let mut reasons = reasons.peekable();
    if reasons.peek().is_none() {
        writeln!(out, "No packet has arrived yet.")?;
    } else {
        let header = ["verdict", "reason", "packets", "meaning"];
        writeln!(out, "{}", table(header, [2], reasons))?;
    }
    Ok(())
}

fn print_list(out: &mut impl Write, list: &ListStatus) -> anyhow::Result<()> {
    let prefixes = list.ipv4_prefixes + list.ipv6_prefixes;
    let plural = if prefixes == 1 { "" } else { "es" };
    write!(
        out,
        "list {}: {} prefix{plural}",
        list.list,
        count(prefixes)
    )?;
    if let Some(age) = list.age_ns {
        write!(out, ", {} old", duration(age))?;
    }
    writeln!(out)?;
    for line in list_warnings(list) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn print_automatic(out: &mut impl Write, status: &Status) -> anyhow::Result<()> {
    let lines: Vec<_> = (status.limits.iter())
        .filter_map(|(name, limit)| Some(capacity::line(name, limit.automatic.as_ref()?)))
        .collect();
    for line in &lines {
        writeln!(out, "{line}")?;
    }
    if !lines.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

fn print_answers(out: &mut impl Write, status: &Status) -> anyhow::Result<()> {
    let answering = status.limits.iter();
    let answering = answering.filter(|(_, limit)| !limit.answers.is_empty());
    let mut has_any = false;
    for (name, limit) in answering {
        let sent = limit.answers.iter();
        let sent = sent.map(|(answer, packets)| format!("{} {answer}", count(*packets)));
        let sent: Vec<_> = sent.collect();
        writeln!(out, "{name}: answered {}", sent.join(", "))?;
        has_any = true;
    }
    if has_any {
        writeln!(out)?;
    }
    Ok(())
}

fn print_connections(out: &mut impl Write, connections: &ConnectionsStatus) -> anyhow::Result<()> {
    writeln!(
        out,
        "open connections that limits count: {}",
        count(connections.counted)
    )?;
    if let Some(tracked) = connections.tracked {
        writeln!(out, "of these, forwarded: {}", count(tracked))?;
    }
    if connections.uncounted > 0 {
        let uncounted = count(connections.uncounted);
        writeln!(out, "NOT COUNTED for lack of room: {uncounted}")?;
    }
    if let Some(error) = &connections.error {
        writeln!(out, "COUNTED ONCE A SECOND: {error}")?;
    }
    writeln!(out)?;
    Ok(())
}

/// Prints the number of open connections that each limit counts.
fn print_open(out: &mut impl Write, status: &Status) -> anyhow::Result<()> {
    let rows = status.limits.iter().filter_map(|(name, limit)| {
        let each = limit.connections.map_or_else(|| "–".to_owned(), count);
        Some([name.clone(), count(limit.open?), each])
    });
    let header = ["connections", "open", "each key at most"];
    writeln!(out, "{}\n", table(header, [1, 2], rows))?;
    Ok(())
}

/// Prints the queues of clients, if a limit has one.
fn print_queues(out: &mut impl Write, status: &Status) -> anyhow::Result<()> {
    let queues = status.limits.iter();
    let queues = queues.filter_map(|(name, limit)| Some((name, limit.queue.as_ref()?)));
    let mut rows = queues
        .map(|(name, queue)| {
            let waited = queue.waited_ns.checked_div(queue.resumed);
            [
                name.clone(),
                count(queue.waiting),
                count(queue.queued),
                count(queue.resumed),
                waited.map_or_else(|| "–".to_owned(), duration),
                count(queue.expired),
                count(queue.rejected),
            ]
        })
        .peekable();
    if rows.peek().is_some() {
        let header = [
            "queue", "waiting", "queued", "resumed", "after", "expired", "rejected",
        ];
        writeln!(out, "{}\n", table(header, [1, 2, 3, 4, 5, 6], rows))?;
    }
    Ok(())
}

fn print_standing(out: &mut impl Write, status: &StandingStatus) -> anyhow::Result<()> {
    writeln!(out, "{}", standing::shortage_line(status.shortage.as_ref()))?;
    if let Some(error) = &status.handshakes_error {
        writeln!(out, "HANDSHAKES PROVE NO SOURCE: {error}")?;
    }
    if !status.limits.is_empty() {
        writeln!(out, "{}", standing::traffic_table(status))?;
    }
    if let Some(line) = standing::cookies_line(status) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    Ok(())
}

fn print_guard(out: &mut impl Write, guard: &GuardStatus) -> anyhow::Result<()> {
    if let Some(error) = &guard.error {
        writeln!(
            out,
            "GUARD BLIND since {:.0}: it cannot find the addresses that it must spare, so no source is banned \
             automatically: {error}",
            guard.since
        )?;
    } else if guard.answered_at.is_some() {
        write!(
            out,
            "guard: gateways, this host and SSH peers are not banned ({})",
            counted(guard.protected, "address"),
        )?;
        if !guard.sessions_recorded {
            write!(
                out,
                "; this host does not record logins, so name your address under `never-ban`"
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn print_state(out: &mut impl Write, state: &StateStatus) -> anyhow::Result<()> {
    let file = state.file.display();
    match state.saved_at {
        Some(saved_at) => writeln!(
            out,
            "state: {file}, saved {saved_at:.0} with {} in debt and {}",
            counted(
                usize::try_from(state.buckets).unwrap_or(usize::MAX),
                "bucket"
            ),
            counted(usize::try_from(state.bans).unwrap_or(usize::MAX), "ban"),
        )?,
        None => writeln!(out, "state: {file}, not saved yet")?,
    }
    if let Some(error) = &state.error {
        writeln!(out, "  NOT saved since: {error}")?;
    }
    Ok(())
}
