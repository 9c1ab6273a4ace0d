//! `limiter suggest --check`: the fit of a configuration's limits to a capture.

use std::{io::Write as _, path::Path};

use limiter_datapath::kernel::{possible_cpus, wall_clock_now};
use limiter_offline::{
    replay::{Replay, engine::NativeEngine},
    suggest::{Fit, Frames, Host, LimitFit, Verdicts, observing},
};
use limiter_policy::{config, policy::CompiledPolicy};
use limiter_report::render::{count, table_without};
use serde::Serialize;

use super::wording::fraction;
use crate::cli::{
    output::{print_json, stdout},
    traffic_file,
};

#[derive(Serialize)]
struct CheckDocument {
    packets: u64,
    would_drop: u64,
    limits: Vec<LimitFit>,
}

pub(super) fn check(
    file: &Path,
    capture: &Path,
    host: Option<Host>,
    most_dropped: f64,
    json: bool,
) -> anyhow::Result<()> {
    let config = config::load(file, wall_clock_now())?;
    let mut policy = config.policy.clone();
    observing(&mut policy);
    let mut tables = CompiledPolicy::new(&policy, possible_cpus())?;
    // As in a replay: the capture does not tell which CPU gets a packet.
    tables.features.standing.recorded_visits = u64::MAX;
    let mut capture = traffic_file::open(capture)?;
    let engine = NativeEngine::new(&tables, false);
    let replay = Replay::new(&policy, tables, Box::new(engine), false);
    let mut frames = Frames::new(Verdicts::new(replay, &policy), host);
    // Packets before an error count, and the error is reported.
    let end: anyhow::Result<()> = loop {
        match capture.next_packet() {
            Ok(Some(packet)) => frames.sort(&packet)?,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        }
    };
    drop(capture);
    let (verdicts, _) = frames.finish()?;
    let (packets, would_drop) = verdicts.all();
    // `config.policy` has the modes of the file; in `policy` all limits observe.
    let limits = verdicts.limit_fits(&config.policy, most_dropped);
    if json {
        print_json(&CheckDocument {
            packets,
            would_drop,
            limits,
        })?;
    } else {
        print(&limits, most_dropped)?;
        writeln!(
            stdout(),
            "{} packets to this host, {} of which one limit or more would drop, each limit judged \
             alone",
            count(packets),
            count(would_drop)
        )?;
    }
    end
}

/// Prints the fit of limits, without the column of usage if it is unknown.
pub(super) fn print(limits: &[LimitFit], most_dropped: f64) -> anyhow::Result<()> {
    const USED: usize = 5;
    let header = [
        "limit",
        "mode",
        "packets",
        "would drop",
        "fraction",
        "most used",
        "how it fits",
    ];
    let is_known = limits.iter().any(|limit| limit.used.is_some());
    let hidden: &[usize] = if is_known { &[] } else { &[USED] };
    let rows = limits.iter().map(|limit| {
        [
            limit.limit.clone(),
            limit.mode.name().to_owned(),
            count(limit.packets),
            count(limit.would_drop),
            fraction(limit.fraction),
            limit.used.map_or_else(|| "–".to_owned(), fraction),
            match limit.fit {
                Fit::Unmatched => "no packet matches it".to_owned(),
                Fit::Tight => format!("too tight: drops more than {}", fraction(most_dropped)),
                Fit::Wide => "too wide: no source uses a tenth of its burst".to_owned(),
                Fit::Fits => "fits".to_owned(),
            },
        ]
    });
    writeln!(
        stdout(),
        "{}",
        table_without(hidden, header, [2, 3, 4, 5], rows)
    )?;
    Ok(())
}
