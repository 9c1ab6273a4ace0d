//! docs/strategies.md: the captures match the text, and the commands print exactly the output
//! shown.
//!
//! `LIMITER_WRITE_EXAMPLES=1 cargo test -p limiter-userspace --test replay documents` rewrites the
//! captures and the plots. Output in the text is changed by hand.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use limiter_common::strategy::{Parameters, Strategy};
use serde_json::Value;
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

const MS: u64 = 1_000_000;

/// An example of a strategy.
struct Example {
    /// The strategy's name, also the name of the files.
    name: &'static str,
    /// The packets' times, in milliseconds since the first packet.
    times: fn() -> Vec<u64>,
    /// The dropped packets, counted from 1, as in the document of the Python library.
    dropped: &'static [u64],
}

const EXAMPLES: [Example; 3] = [
    Example {
        name: "fixed-window",
        times: fixed_window,
        dropped: &[11, 22, 23],
    },
    Example {
        name: "moving-window",
        times: moving_window,
        dropped: &[12],
    },
    Example {
        name: "sliding-window-counter",
        times: sliding_window_counter,
        dropped: &[121],
    },
];

/// From 00:00:45 on: ten requests at the window's end, one of them refused, ten at the start of the
/// next window, and more until that window has ended.
fn fixed_window() -> Vec<u64> {
    let at_end = (50..60).map(|second| second * 1_000);
    let at_start = (0..10).map(|request| 60_000 + request * 500);
    let times = [0].into_iter().chain(at_end).chain(at_start);
    times.chain([65_000, 119_999, 120_000]).collect()
}

/// From 00:00:10 on: 1, 2, 4 and 3 requests, and two more.
fn moving_window() -> Vec<u64> {
    let times = [(0, 1), (10, 2), (20, 4), (40, 3), (61, 1), (62, 1)];
    let times = times.into_iter();
    let requests = times.flat_map(|(second, requests)| (0..requests).map(move |_| second * 1_000));
    requests.collect()
}

/// 40 requests in the first minute, 80 in the first half of the second minute, one too many, and
/// another one ten seconds later.
fn sliding_window_counter() -> Vec<u64> {
    let previous = (0..40).map(|request| request * 1_500);
    let current = (1..=80).map(|request| 60_000 + request * 375);
    previous.chain(current).chain([90_000, 100_000]).collect()
}

fn capture(times: &[u64]) -> Result<Vec<u8>> {
    let frame = Frame::new("192.0.2.7".parse()?, "192.0.2.1".parse()?).udp(7, 7, b"")?;
    // The captures begin at a new year's midnight.
    let packets = times
        .iter()
        .map(|ms| Packet::whole((1_767_225_600_000 + ms) * MS, frame.clone()));
    Ok(PCAP.write(&packets.collect::<Vec<_>>()))
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Compares a file of the document with its expected content, or writes it.
fn check_or_write(name: &str, expected: &[u8]) -> Result<()> {
    let path = repository().join("docs/strategies").join(name);
    if env::var_os("LIMITER_WRITE_EXAMPLES").is_some() {
        fs::write(&path, expected)?;
    }
    let found = fs::read(&path).with_context(|| name.to_owned())?;
    ensure!(found == expected, "docs/strategies/{name} is out of date");
    Ok(())
}

/// Returns the output of a shell command in a directory, with `limiter` in its path.
fn shell(directory: &Path, line: &str) -> Result<String> {
    let command = Path::new(env!("CARGO_BIN_EXE_limiter"));
    let command = command.parent().context("the command has no directory")?;
    let path = [
        command.as_os_str(),
        &env::var_os("PATH").unwrap_or_default(),
    ]
    .join(":".as_ref());
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(directory)
        .env("PATH", path)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && errors.is_empty(),
        "{line}\n{errors}"
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// Makes a directory with the examples where the document's commands find them, without plots.
fn examples() -> Result<tempfile::TempDir> {
    let directory = tempfile::tempdir()?;
    let examples = directory.path().join("docs/strategies");
    fs::create_dir_all(&examples)?;
    for Example { name, .. } in EXAMPLES {
        for kind in ["yaml", "pcap"] {
            let file = format!("{name}.{kind}");
            let from = repository().join("docs/strategies").join(&file);
            fs::copy(from, examples.join(file))?;
        }
    }
    Ok(directory)
}

#[test]
fn the_captures_and_the_plots_are_up_to_date() -> Result<()> {
    for Example { name, times, .. } in EXAMPLES {
        check_or_write(&format!("{name}.pcap"), &capture(&times())?)?;
    }
    let directory = examples()?;
    for Example { name, dropped, .. } in EXAMPLES {
        let file = format!("docs/strategies/{name}");
        let replay = format!("limiter replay -c {file}.yaml {file}.pcap --json --plot plot.svg");
        let native = shell(directory.path(), &replay)?;
        let lines = native.lines().map(serde_json::from_str::<Value>);
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        let drops = lines.iter().filter(|line| line["verdict"] == "drop");
        let drops: Vec<_> = drops.filter_map(|line| line["n"].as_u64()).collect();
        assert_eq!(drops, dropped, "{name}");
        let plot = fs::read(directory.path().join("plot.svg"))?;
        check_or_write(&format!("{name}.svg"), &plot)?;

        let kernel = shell(directory.path(), &format!("{replay} --engine kernel"))?;
        assert_eq!(kernel, native, "{name}");
        assert_eq!(fs::read(directory.path().join("plot.svg"))?, plot, "{name}");
    }
    Ok(())
}

/// Runs every code block of the document that begins with a command.
#[test]
fn the_commands_print_what_the_document_shows() -> Result<()> {
    let document = fs::read_to_string(repository().join("docs/strategies.md"))?;
    let directory = examples()?;
    // The odd parts of the split text are inside code blocks.
    let blocks = document.split("```").skip(1).step_by(2);
    let shown = blocks.filter_map(|block| block.trim_start().strip_prefix("$ "));
    let mut commands = 0;
    for (line, output) in shown.filter_map(|block| block.split_once('\n')) {
        let printed = shell(directory.path(), line)?;
        let printed: Vec<_> = printed.lines().map(str::trim_end).collect();
        let output: Vec<_> = output.trim_end().lines().collect();
        assert_eq!(printed, output, "{line}");
        commands += 1;
    }
    for Example { name, .. } in EXAMPLES {
        assert!(
            document.contains(&format!("](strategies/{name}.svg)")),
            "{name}"
        );
        assert!(
            document.contains(&format!("--plot docs/strategies/{name}.svg")),
            "{name}"
        );
    }
    assert!(commands >= EXAMPLES.len());
    Ok(())
}

#[test]
fn windows_are_longer_by_no_more_than_the_page_says() -> Result<()> {
    const SECOND: u64 = 1_000_000_000;
    let document = fs::read_to_string(repository().join("docs/strategies.md"))?;
    let claim = "less than a thousandth of its period, with a `count` up to a million by less\n  than a 100 000th";
    ensure!(document.contains(claim), "not in the document:\n{claim}");
    for strategy in [Strategy::FixedWindow, Strategy::SlidingWindowCounter] {
        for period_ns in [SECOND, 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND] {
            for count in [1, 100, 10_000, 1_000_000, 1_000_000_000] {
                let parameters = Parameters::new(strategy, 0, count, period_ns);
                let window = parameters.context("not a window")?.window;
                let longer_ns = window.layout.ns(window.period) - period_ns;
                let part = if count <= 1_000_000 { 100_000 } else { 1_000 };
                ensure!(
                    longer_ns * part < period_ns,
                    "{} {count} per {period_ns} ns: {longer_ns} ns longer",
                    strategy.name()
                );
            }
        }
    }
    Ok(())
}
