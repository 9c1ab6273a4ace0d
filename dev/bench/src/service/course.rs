//! The course of a flood: the service for good clients before it, in it, and after it.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use bench_common::Group;
use serde::Serialize;
use testbed::Interrupt;

use super::{
    Site,
    clients::{ask, visits, working_day},
    defence::{DEFENCES, Defence, LIMITER, NOTHING},
    ensure_served,
    flood::{FLOODS, Flood},
    forger::Forger,
    wait,
};

/// The flood that is drawn: the server has no defence of its own against it.
const FLOOD: &str = "DNS, IPv4, 300 k/s";

/// The defences drawn: none, and the package's configuration.
const DRAWN: [&str; 2] = [NOTHING, LIMITER];

/// When the flood comes, when it ends, and how long clients ask.
const COMES: Duration = Duration::from_secs(5);
const ENDS: Duration = Duration::from_secs(17);
const TIME: Duration = Duration::from_secs(24);

/// The questions of so long are one point of a line.
const STEP: Duration = Duration::from_millis(500);

/// The courses of one flood behind several defences.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Courses {
    pub(crate) flood: Flood,
    /// From the start, in seconds.
    pub(crate) comes: f64,
    pub(crate) ends: f64,
    pub(crate) lines: Vec<Line>,
}

/// The service for some clients behind one defence.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) defence: &'static str,
    pub(crate) clients: &'static str,
    /// When they asked, in seconds from the start, and the percentage answered within 250 ms.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Returns the number of runs.
pub(crate) const fn runs() -> usize {
    DRAWN.len()
}

/// Lets the flood come and go in front of each defence.
pub(crate) fn measure(
    limiter: Option<&Path>,
    interrupt: &Interrupt,
    mut progress: impl FnMut(&str),
) -> Result<Courses> {
    let _held = super::hold()?;
    let flood = FLOODS.into_iter().find(|flood| flood.name == FLOOD);
    let flood = flood.context("no such flood")?;
    let mut lines = Vec::new();
    for name in DRAWN {
        let defence = DEFENCES.into_iter().find(|defence| defence.name == name);
        let defence = defence.context("no such defence")?;
        if let Some(missing) = defence.missing(limiter) {
            anyhow::bail!("{missing}");
        }
        progress(&format!("the course of {}: {name}", flood.name));
        lines.extend(behind(&defence, &flood, limiter, interrupt).context(name)?);
    }
    Ok(Courses {
        flood,
        comes: COMES.as_secs_f64(),
        ends: ENDS.as_secs_f64(),
        lines,
    })
}

fn behind(
    defence: &Defence,
    flood: &Flood,
    limiter: Option<&Path>,
    interrupt: &Interrupt,
) -> Result<[Line; 2]> {
    let planned = working_day(TIME);
    let mut site = Site::new(flood, defence, &planned, limiter, interrupt)?;
    let client = &site.pair.client;
    ensure_served(&ask(&visits(1, STEP), flood, client, interrupt)?, flood)?;
    let start = Instant::now();
    let questions = thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&planned, flood, client, interrupt));
        wait(COMES, interrupt)?;
        let forger = Forger::start(flood, &site.pair, None)?;
        wait(ENDS.saturating_sub(start.elapsed()), interrupt)?;
        forger.stop()?;
        let asked = asking.join();
        asked.map_err(|_| anyhow!("the thread that asks panicked"))?
    })?;
    site.at_work.check()?;
    let line = |group: Group, clients| Line {
        defence: defence.name,
        clients,
        points: questions.promptly(start, STEP, |of, _| of == group),
    };
    Ok([line(Group::Known, "known"), line(Group::New, "new")])
}
