//! Output for people: the summary and the plot.

use anyhow::{Context as _, Result};
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::replay;

const CONFIG: &str = "limits: {PacketsPerIPAddress: {burst: 10, count: 10, period: 1s}}\n";

/// Ten seconds with 5 packets a second from one source and 20 from another.
fn capture() -> Result<Vec<u8>> {
    let udp = |source: &str| {
        Frame::new(source.parse()?, "10.0.0.1".parse()?).udp(1, 2, b"padding to sixty!!")
    };
    let (calm, flood) = (udp("10.0.0.2")?, udp("10.0.0.3")?);
    let packets = (0..200u64).flat_map(|n| {
        let flood = Packet::whole(n * 50_000_000, flood.clone());
        let calm = (n % 4 == 0).then(|| Packet::whole(n * 50_000_000 + 1_000, calm.clone()));
        [Some(flood), calm].into_iter().flatten()
    });
    Ok(PCAP.write(&packets.collect::<Vec<_>>()))
}

#[test]
fn the_summary_names_who_is_dropped() -> Result<()> {
    let replayed = replay(CONFIG, &capture()?, true, &[])?;
    assert!(replayed.success, "{}", replayed.stderr);
    let line = |start: &str| {
        let found = replayed.stdout.lines().find(|line| line.starts_with(start));
        found.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(
        line("250 packets").context(replayed.stdout.clone())?,
        "250 packets, 15 000 bytes in 9.95 s: 25 packets/s, 1 507 bytes/s"
    );
    // 10 at once and 10 in each of the 9.95 seconds, less half a token at the end.
    assert_eq!(
        line("159 passed").as_deref(),
        Some("159 passed, 91 dropped")
    );
    assert_eq!(
        line("PacketsPerIPAddress").as_deref(),
        Some("PacketsPerIPAddress 159 9 540 91 5 460")
    );
    let source = line("10.0.0.3").context(replayed.stdout.clone())?;
    assert_eq!(
        source,
        "10.0.0.3 91 5 460 0.950000 s 9.950000 s 50 ms PacketsPerIPAddress"
    );
    Ok(())
}

#[test]
fn a_plot_has_no_other_name_than_an_svgs() -> Result<()> {
    let directory = tempfile::tempdir()?;
    for name in ["plot.png", "plot.svg.PDF"] {
        let path = directory.path().join(name);
        let plot = path.to_str().context("a path in UTF-8")?;
        let replayed = replay(CONFIG, &capture()?, false, &["--plot", plot])?;
        assert!(!replayed.success);
        assert!(
            replayed.stderr.contains("a plot is an SVG: name it "),
            "{}",
            replayed.stderr
        );
        assert!(!path.exists());
    }
    // A device needs no extension.
    assert!(replay(CONFIG, &capture()?, false, &["--plot", "/dev/null"])?.success);
    Ok(())
}

#[test]
fn the_plot_is_an_svg_with_all_its_parts() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("plot.svg");
    let plot = path.to_str().context("a path in UTF-8")?;
    let replayed = replay(CONFIG, &capture()?, false, &["--plot", plot])?;
    assert!(replayed.success, "{}", replayed.stderr);
    let svg = std::fs::read_to_string(&path)?;
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    for part in [
        ">Replay of capture<",
        ">250 packets: 159 passed, 91 dropped<",
        ">passed: 159<",
        ">dropped by PacketsPerIPAddress: 91<",
        ">packets per second<",
        ">time since the first packet (s)<",
    ] {
        assert!(svg.contains(part), "{part}\n{svg}");
    }
    // That curve needs a single source; docs/strategies.md has pictures of it.
    assert!(!svg.contains("% of count in a period"), "{svg}");
    Ok(())
}

/// Drops by no limit are shown by their reason.
#[test]
fn the_plot_tells_reasons_apart() -> Result<()> {
    let configuration = "\
        lists: [{name: bad, cidr: 10.0.0.9}]\n\
        block: bad\n\
        limits:\n  \
          PacketsPerIPAddress:\n    \
            {burst: 10, count: 10, period: 1s, ban: {after: 10, within: 2s, for: 1h}}\n";
    let udp = |source: &str| Frame::new(source.parse()?, "10.0.0.1".parse()?).udp(1, 2, b"x");
    let flood = udp("10.0.0.3")?;
    let mut packets: Vec<Packet> = (0..200)
        .map(|n| Packet::whole(n * 50_000_000, flood.clone()))
        .collect();
    let blocked = udp("10.0.0.9")?;
    packets.push(Packet::whole(10_000_000_000, blocked.clone()));
    // Its IPv4 header claims more bytes than there are.
    packets.push(Packet::whole(10_000_000_000, blocked[..30].to_vec()));
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("plot.svg");
    let plot = path.to_str().context("a path in UTF-8")?;
    let replayed = replay(
        configuration,
        &PCAP.write(&packets),
        false,
        &["--plot", plot],
    )?;
    assert!(replayed.success, "{}", replayed.stderr);
    let svg = std::fs::read_to_string(&path)?;
    for part in [
        ">dropped by PacketsPerIPAddress: ",
        ">dropped, banned: ",
        ">dropped, blocked_list: 1<",
        ">dropped, malformed_ipv4: 1<",
    ] {
        assert!(svg.contains(part), "{part}\n{svg}");
    }
    assert_eq!(svg.matches(">dropped").count(), 4, "{svg}");
    Ok(())
}

#[test]
fn a_plot_never_replaces_the_capture() -> Result<()> {
    let replayed = replay(CONFIG, &capture()?, false, &["--plot", "./capture"])?;
    assert!(!replayed.success);
    assert_eq!(
        replayed.stderr,
        "the plot ./capture would replace the capture\n"
    );
    let replayed = replay(CONFIG, &capture()?, false, &["--plot", "no/such/plot.svg"])?;
    assert!(!replayed.success);
    assert_eq!(
        replayed.stderr,
        "cannot write the plot no/such/plot.svg: No such file or directory (os error 2)\n"
    );
    Ok(())
}
