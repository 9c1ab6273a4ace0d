//! The results as a document, with charts.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};
use bench_common::Layout;

use super::{
    chart,
    grid::{Grid, Unit, grids},
    screen,
};
use crate::{quality, results::Results};

/// Writes `benchmarks.md` into a directory, and its charts into `benchmarks/` beside it.
pub(crate) fn write(results: &Results, directory: &Path) -> Result<()> {
    let charts = directory.join("benchmarks");
    fs::create_dir_all(&charts)
        .with_context(|| format!("cannot make the directory {}", charts.display()))?;
    chart::draw(
        &results.rates,
        Layout::V4,
        Unit::Rate,
        &charts.join("packets-per-second.svg"),
    )?;
    chart::draw(
        &results.costs,
        Layout::V4,
        Unit::Cost,
        &charts.join("nanoseconds-per-packet.svg"),
    )?;
    let file = directory.join("benchmarks.md");
    fs::write(&file, text(results)?).with_context(|| format!("cannot write {}", file.display()))
}

fn text(results: &Results) -> Result<String> {
    let machine = &results.machine;
    let mut text = String::new();
    write!(
        text,
        "# Benchmarks\n\n\
         Made by `cargo xtask bench{}` on {}: {}, {} CPUs, Linux {}, load {} before the start. \
         Do not edit: run it again.\n\n\
         ## Targets\n\n{}\n",
        if results.quick { " --quick" } else { "" },
        machine.date,
        machine.cpu,
        machine.cpus,
        machine.kernel,
        machine.load,
        table(&screen::targets(&results.targets)),
    )?;
    writeln!(text, "{METHOD}")?;
    writeln!(
        text,
        "## Millions of packets a second over veth\n\n\
         ± is half of the range of all runs; in brackets, how many times nftables' rate.\n\n\
         ![packets a second](benchmarks/packets-per-second.svg)\n"
    )?;
    for grid in grids(&results.rates, Unit::Rate) {
        writeln!(text, "### {}\n\n{}", grid.title, table(&grid))?;
    }
    writeln!(
        text,
        "## Nanoseconds a packet\n\n\
         In brackets, how many more than to parse the packet and take the time.\n\n\
         ![nanoseconds a packet](benchmarks/nanoseconds-per-packet.svg)\n"
    )?;
    for grid in grids(&results.costs, Unit::Cost) {
        writeln!(text, "### {}\n\n{}", grid.title, table(&grid))?;
    }
    writeln!(
        text,
        "## Clients during the flood\n\n\
         {} clients send {} packets a second each, one sends {}; every source may send {} a \
         second, and as many in a burst. The flood comes from 16 M random sources at full speed.\n\n{}",
        quality::GOOD_CLIENTS,
        quality::GOOD_PER_SECOND,
        quality::OVER_PER_SECOND,
        quality::PER_SECOND,
        table(&screen::quality(results))
    )?;
    for (contender, why) in &results.missing {
        writeln!(text, "{contender} did not take part: {why}.")?;
    }
    Ok(text)
}

/// How it was measured.
const METHOD: &str = "\
## Method

Everything is measured in one run, in network namespaces joined by a veth pair. For each flood
every contender is set up on a pair of its own and warmed up until it has seen nearly all sources;
then they are measured in turns, several times over. A figure is the median of its runs.

* **Generator.** An XDP program that the kernel runs on live frames (`BPF_PROG_TEST_RUN`) draws a
  random source for each, keeps the IPv4 header's checksum right, and redirects it into the veth
  pair. The receiver works through a batch of 64 on the same CPU before the next batch is made, so
  the rate is that of generator and receiver together. Time in which another process had the CPU
  is not counted; a run counts only if every frame that was sent is accounted for: seen by the
  contender, or lost before it.
* **The network stack is left out** of packets a second: what a contender lets pass is dropped
  right behind it, by the limiter's own build for this benchmark, or the rule after the limit.
* **Limits.** Packets a second: 1000 for each source, so that a flood from few sources is over the
  limit and one from many is not. Nanoseconds a packet: nothing is over a limit, so everything is
  charged to every limit. Second and further limits have room.
* **Sizes.** The limiter and the fixed window have room for 2^20 sources; the nftables set for as
  many as there are. So has hashlimit, but the kernel gives it 2^20 at most; once it is full it
  drops every new source, clients among them. Nothing expires.
* **Contenders.** `XDP_DROP` counts and drops. `parse + clock` parses as the limiter does and takes
  the time. `fixed window` is an XDP limiter as the public ones are: a second's count for each
  source in an LRU hash map. nftables: `add @set { ip saddr limit rate over … } drop` at the netdev
  hook. hashlimit: raw PREROUTING.
* **Nanoseconds a packet**: `BPF_PROG_TEST_RUN` without live frames, the source drawn inside the
  program, by the same code in all of them.
* **Clients.** Their packets are made by the generator, by the clock, in between the flood's, so
  none is lost on the way to the limiter. Behind the limiter and all of the network stack, the
  filter of the application's UDP socket counts them. What passes of the flood is dropped right
  behind the limiter, so that the flood is as fast as that can take it.
";

fn table(grid: &Grid) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = row(&grid.header);
    text += "|---|";
    text += &"---:|".repeat(grid.header.len() - 1);
    text.push('\n');
    grid.rows.iter().for_each(|cells| text += &row(cells));
    text
}
