//! The daemon's page, as an HTTP client sees it.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Namespace, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, GOOD, PATIENCE, Scene, assert_fails, pair, wait_for};

/// The page's default address.
pub(crate) const PAGE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9471);

/// As browsers ask.
const HOST: &str = "Host: localhost:9471\r\n";

const CONFIGURATION: &str = "\
page: {hosts: [limiter.example.org]}
limits:
  PacketsPerIPAddress: {burst: 3, count: 1, period: 1h}
  All: {id: total, cost: packets, burst: 1000, count: 1, period: 1h}
  Observed: {id: ipAddress, cost: packets, burst: 1, count: 1, period: 1h, mode: observe}
lists: [{name: bad, cidr: 198.51.100.0/24}]
block: bad
";

fn start(pair: &Pair, configuration: &str) -> Result<Limiter> {
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    Limiter::start(Path::new(BINARY), &pair.server, configuration, &arguments)
}

/// Sends a number of packets from each source.
fn send(pair: &Pair, sources: &[&str], count: usize) -> Result<()> {
    let mut frames = Vec::new();
    for source in sources {
        let frame = Frame::new(source.parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
        frames.extend(vec![frame; count]);
    }
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&frames)?;
    Ok(())
}

/// Returns the head and the body of the response to a request. Each of `fields` ends in a line end.
fn request(namespace: &Namespace, line: &str, fields: &str) -> Result<(String, String)> {
    let response = namespace.enter(|| {
        let mut stream = TcpStream::connect(PAGE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "{line} HTTP/1.1\r\n{fields}\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    })?;
    let (head, body) = response.split_once("\r\n\r\n").context("no head")?;
    Ok((head.to_ascii_lowercase(), body.to_owned()))
}

/// Returns a page, which must be there.
pub(crate) fn get(namespace: &Namespace, path: &str) -> Result<String> {
    let (head, body) = request(namespace, &format!("GET {path}"), HOST)?;
    ensure!(head.starts_with("http/1.1 200 ok"), "{path}: {head}");
    Ok(body)
}

/// Returns a page as text: its tags are blanks.
fn words(page: &str) -> String {
    let mut words = String::new();
    let mut is_tag = false;
    for character in page.chars() {
        match character {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                words.push(' ');
            }
            _ if !is_tag => words.push(character),
            _ => {}
        }
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits until a page shows all of these texts. It is renewed once a second.
#[track_caller]
fn assert_shown(namespace: &Namespace, path: &str, expected: &[&str]) -> Result<()> {
    let mut shown = String::new();
    wait_for(|| {
        shown = words(&get(namespace, path)?);
        Ok(expected.iter().all(|text| shown.contains(text)))
    })
    .with_context(|| format!("{path} has not all of {expected:?}:\n{shown}"))
}

#[test]
fn a_visitor_sees_who_is_dropped_and_why() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, CONFIGURATION)?;
    assert_shown(
        &pair.server,
        "/",
        &["All is well.", "No packet has arrived yet.", "No bans."],
    )?;
    send(&pair, &["10.77.0.2", "10.77.0.3"], 15)?;
    send(&pair, &["198.51.100.7"], 4)?;
    let evil = "<script>alert(1)</script>";
    limiter.show(&["ban", "192.0.2.7", "--for", "1h", "--reason", evil])?;
    limiter.show(&["ban", "10.77.0.3", "--for", "1h", "--force"])?;
    assert_shown(
        &pair.server,
        "/",
        &[
            "over_limit drop 24",
            "blocked_list drop 4",
            "within_limits pass 6",
            "10.77.0.2 PacketsPerIPAddress 12",
            "its next token, in",
            "10.77.0.3 PacketsPerIPAddress 12",
            "banned until",
            "192.0.2.7 an operator operator",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "Observed observe packets by ipAddress",
            "994 of 1 000 (99.4 %)",
            "bad ok – – 1 0 0 block",
            "PacketsPerIPAddress began to drop 10.77.0.2",
        ],
    )?;
    let page = get(&pair.server, "/")?;
    ensure!(!page.contains("<script>"), "{page}");
    ensure!(page.contains("<noscript><meta http-equiv=\"refresh\""));
    ensure!(page.contains("<a href=\"/explain?address=10.77.0.2\">"));

    let explained = words(&get(&pair.server, "/explain?address=10.77.0.2")?);
    let reported = limiter.show(&["explain", "10.77.0.2"])?;
    let headline = reported.lines().next().context("a headline")?;
    let (fate, _) = headline.split_once(", for ").context("a time")?;
    ensure!(explained.contains(fate), "{explained}\nhas not\n{fate}");

    assert_shown(
        &pair.server,
        "/offenders?limit=All",
        &["No drops are remembered here."],
    )?;
    assert_shown(
        &pair.server,
        "/offenders?by=range",
        &["10.77.0.0/24 PacketsPerIPAddress 24"],
    )?;
    assert_shown(&pair.server, "/bans?prefix=192.0.2.0/24", &["192.0.2.7"])?;
    let others = words(&get(
        &pair.server,
        "/bans?prefix=203.0.113.1&origin=crowdsec",
    )?);
    ensure!(others.contains("There is no such ban here."), "{others}");

    limiter.stop()?;
    Ok(())
}

#[test]
fn connections_standing_sieves_and_what_is_wrong() -> Result<()> {
    const OTHERS: &str = "\
page: on
state: state
limits:
  Open: {id: ipAddress, cost: connections, limit: 10}
  All: {id: total, cost: packets, burst: 1000, count: 50, period: 1h, reserve: {unknown: 10%}, ip-rep: main}
ip-rep: [{name: main, buckets: 2, size: 4}]
";
    let pair = pair()?;
    let limiter = start(&pair, OTHERS)?;
    send(&pair, &["10.77.0.2"], 5)?;
    assert_shown(
        &pair.server,
        "/",
        &[
            "Open enforce connections by ipAddress 10 open at once",
            "50 per 1 h, burst 1 000",
            "995 of 1 000 (99.5 %)",
            "0 open that limits count, 0 not counted for lack of room.",
            "no shortage: no packet is refused for a reserve",
            "sieve main: ",
            "/state",
            "Reloads 0 succeeded, 0 failed",
        ],
    )?;
    limiter.configure("limits: none")?;
    limiter.wait_for_log("not reloaded")?;
    let wrong = [
        "WARNING the last reload failed: ",
        "Reloads 0 succeeded, 1 failed",
    ];
    assert_shown(&pair.server, "/", &wrong)?;
    limiter.stop()?;
    Ok(())
}

#[test]
fn the_numbers_of_each_second_and_their_history() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, CONFIGURATION)?;
    let history = |window: &str| -> Result<Value> {
        let history = get(&pair.server, &format!("/history?window={window}"))?;
        Ok(serde_json::from_str(&history)?)
    };
    let sum = |history: &Value, name: &str| -> f64 {
        let series = history["series"].as_array().into_iter().flatten();
        let rates = series.filter(|one| one["name"] == name);
        let rates = rates.flat_map(|one| one["rates"].as_array().into_iter().flatten());
        rates.filter_map(Value::as_f64).sum()
    };
    wait_for(|| {
        Ok(!history("minutes")?["times"]
            .as_array()
            .context("times")?
            .is_empty())
    })?;
    send(&pair, &["10.77.0.2"], 103)?;
    wait_for(|| Ok(sum(&history("minutes")?, "over_limit") >= 95.0))?;
    let minutes = history("minutes")?;
    ensure!(
        minutes["step"] == 1 && sum(&minutes, "dropped") >= 95.0,
        "{minutes}"
    );
    ensure!(history("day")?["step"] == 60);
    wait_for(|| Ok(history("minutes")?["incidents"][0]["at"].is_i64()))?;

    let event = pair.server.enter(|| {
        let mut stream = TcpStream::connect(PAGE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET /events HTTP/1.1\r\n{HOST}\r\n")?;
        let mut lines = BufReader::new(stream).lines();
        let event = lines.find_map(|line| Some(line.ok()?.strip_prefix("data: ")?.to_owned()));
        event.context("no event")
    })?;
    let event: Value = serde_json::from_str(&event)?;
    ensure!(event["packets"]["over_limit"] == 100, "{event}");

    // With sixteen streams open, a new client takes the slot of the oldest.
    pair.server.enter(|| {
        let watch = || -> Result<TcpStream> {
            let mut stream = TcpStream::connect(PAGE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            write!(stream, "GET /events HTTP/1.1\r\n{HOST}\r\n")?;
            let mut head = [0; 12];
            stream.read_exact(&mut head)?;
            ensure!(&head == b"HTTP/1.1 200");
            Ok(stream)
        };
        // The server may still count the previous stream.
        let mut watching = (0..18).map(|_| watch()).collect::<Result<Vec<_>>>()?;
        let begun = Instant::now();
        watching[0].read_to_end(&mut Vec::new())?;
        // Without a displacement, all streams end after about 27 s.
        ensure!(begun.elapsed() < Duration::from_secs(15));
        Ok(())
    })?;
    get(&pair.server, "/")?;
    limiter.stop()?;
    Ok(())
}

#[test]
fn only_those_who_know_its_name_and_only_to_look() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, CONFIGURATION)?;
    let status = |line: &str, fields: &str| -> Result<String> {
        let (head, _) = request(&pair.server, line, fields)?;
        let status = head.split(' ').nth(1).context("a status")?;
        Ok(status.to_owned())
    };
    for (line, fields, expected) in [
        ("GET /", HOST, "200"),
        ("HEAD /", HOST, "200"),
        ("GET /", "Host: 127.0.0.1\r\n", "200"),
        ("GET /", "Host: limiter.example.org\r\n", "200"),
        // A foreign name that resolves to this host (DNS rebinding).
        ("GET /", "Host: attacker.example:9471\r\n", "421"),
        ("GET /events", "Host: attacker.example\r\n", "421"),
        ("GET /page.js", "Host: attacker.example\r\n", "421"),
        ("GET http://localhost/", "Host: attacker.example\r\n", "421"),
        ("GET /", "", "421"),
        (
            "GET /",
            "Host: localhost\r\nOrigin: http://attacker.example\r\n",
            "421",
        ),
        ("POST /", HOST, "405"),
        ("DELETE /bans", HOST, "405"),
        ("GET /metrics", HOST, "404"),
        ("GET /../../etc/passwd", HOST, "404"),
        ("GET /explain", HOST, "400"),
        ("GET /explain?address=nobody", HOST, "400"),
        ("GET /bans?prefix=%22", HOST, "400"),
        ("GET /bans?skip=-1", HOST, "400"),
        ("GET /history?window=year", HOST, "400"),
        ("GET /offenders?from=18446744073709551615", HOST, "200"),
        ("GET /bans?position=4294967295&skip=9", HOST, "200"),
    ] {
        let reported = status(line, fields).with_context(|| format!("{line} {fields}"))?;
        ensure!(reported == expected, "{line} {fields}: {reported}");
    }
    for path in ["/", "/page.js", "/events2", "/history?window=day"] {
        let (head, _) = request(&pair.server, &format!("GET {path}"), HOST)?;
        for field in [
            "content-security-policy: default-src 'none'; script-src 'self'; ",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "connection: close",
        ] {
            ensure!(head.contains(field), "{path}: no {field} in {head}");
        }
        ensure!(!head.contains("access-control"), "{head}");
    }
    limiter.stop()?;
    Ok(())
}

/// Returns the response that a user in no group gets from the page's socket, by curl.
fn of_socket(socket: &Path, group: u32) -> Result<String> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "10"]);
    curl.arg("--unix-socket")
        .arg(socket)
        .arg("http://localhost/");
    if group != 0 {
        curl.uid(65_534).gid(group);
    }
    let output = curl.output()?;
    Ok(String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?)
}

#[test]
fn a_socket_is_for_root_and_a_group() -> Result<()> {
    const GROUP: u32 = 4;
    let pair = pair()?;
    let directory = tempfile::tempdir()?;
    // Other users may reach the socket.
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))?;
    let socket = directory.path().join("page.sock");
    let section = format!("page: {{listen: {}}}\n", socket.display());
    let configuration = format!("{section}control: {{group: {GROUP}}}\n{GOOD}");
    let limiter = start(&pair, &configuration)?;
    ensure!(limiter.log()?.contains("page at the socket /"));
    for group in [0, GROUP] {
        let shown = of_socket(&socket, group)?;
        ensure!(shown.contains("All is well."), "{shown}");
    }
    let refused = of_socket(&socket, 65_534)?;
    ensure!(!refused.contains("limiter"), "{refused}");
    // Even if its mode lets them connect.
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777))?;
    let refused = of_socket(&socket, 65_534)?;
    ensure!(!refused.contains("limiter"), "{refused}");

    // Another daemon does not replace the socket.
    let scene = Scene::new()?;
    std::fs::write(scene.path("limiter.yaml"), &configuration)?;
    let taken = "cannot show the page on …: address in use; choose another address with `page: \
                 {listen: …}`, or switch it off with `page: off`";
    assert_fails(&mut scene.run(&pair.server, &["-i", "lo"]), &[taken])?;
    ensure!(of_socket(&socket, 0)?.contains("All is well."));
    limiter.stop()?;
    ensure!(!socket.exists(), "it goes with the daemon");
    Ok(())
}

#[test]
fn there_is_none_unless_it_is_asked_for() -> Result<()> {
    let pair = pair()?;
    let connects = || pair.server.enter(|| Ok(TcpStream::connect(PAGE).is_ok()));
    for section in ["", "page: off\n"] {
        let limiter = start(&pair, &format!("{section}{GOOD}"))?;
        ensure!(!connects()?, "{section}");
        ensure!(limiter.status()?["daemon"]["page"].is_null());
        limiter.configure(&format!("page: on\n{GOOD}"))?;
        let reported = limiter.show(&["reload"])?;
        ensure!(reported.contains("page"), "{reported}");
        ensure!(!connects()?, "only a restart changes it");
        limiter.stop()?;
    }
    let limiter = start(&pair, &format!("page: on\n{GOOD}"))?;
    ensure!(connects()?);
    ensure!(limiter.status()?["daemon"]["page"]["listen"] == "127.0.0.1:9471");
    ensure!(limiter.log()?.contains("page on http://127.0.0.1:9471/"));

    let scene = Scene::new()?;
    std::fs::write(scene.path("limiter.yaml"), format!("page: on\n{GOOD}"))?;
    let taken = "cannot show the page on 127.0.0.1:9471: Address already in use (os error \
                 98); choose another address with `page: {listen: …}`, or switch it off with `page: \
                 off`";
    assert_fails(&mut scene.run(&pair.server, &["-i", "lo"]), &[taken])?;
    limiter.stop()?;
    Ok(())
}
