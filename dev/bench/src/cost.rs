//! Nanoseconds per packet, by `BPF_PROG_TEST_RUN` with sources drawn inside the program: without a
//! driver and a generator.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use bench_common::Sink;
use testbed::Interrupt;

use crate::{
    contender::{Contender, LoadedProgram, Runnable as _, Terms},
    cpu,
    float::to_f64,
    results::Figure,
    scenario::Scenario,
    stats::Spread,
};

/// No source exceeds this limit, so every packet is charged: the most work possible.
const PER_SECOND: u64 = 1_000_000_000;

/// Runs of the program in one system call.
const TIMES: u32 = 100_000;

/// The longest time until every source has been seen.
const LONGEST_WARM_UP: Duration = Duration::from_secs(40);

/// Measures the contenders that are programs under one flood, in turns.
pub(crate) fn measure(
    contenders: &[Contender],
    scenario: &Scenario,
    rounds: usize,
    time: Duration,
    interrupt: &Interrupt,
    mut progress: impl FnMut(&str),
) -> Result<Vec<Figure>> {
    let terms = terms(scenario);
    let frame = scenario.frame()?;
    let mut programs = Vec::new();
    for contender in contenders {
        let Some(program) = contender.load(&terms)? else {
            continue;
        };
        progress(&format!("{}: {scenario} is prepared", contender.name));
        let run = Run {
            program: &program,
            frame: &frame,
            cpus: scenario.cpus,
            interrupt,
        };
        run.until(LONGEST_WARM_UP, scenario.warm_up(contender.room()))?;
        programs.push((contender.name, program, Vec::new()));
    }
    for _ in 0..rounds {
        for (name, program, runs) in &mut programs {
            progress(&format!("{name}: {scenario}"));
            let run = Run {
                program,
                frame: &frame,
                cpus: scenario.cpus,
                interrupt,
            };
            runs.push(run.until(time, u64::MAX)?);
        }
    }
    programs
        .into_iter()
        .map(|(contender, program, runs)| {
            let kept = program.kept().map(|kept| kept.measure(scenario.sources()));
            Ok(Figure {
                contender,
                scenario: *scenario,
                spread: Spread::new(runs).context("no rounds")?,
                lost_ppm: 0.0,
                kept: kept.transpose()?,
            })
        })
        .collect()
}

fn terms(scenario: &Scenario) -> Terms {
    Terms {
        layout: scenario.layout,
        sources_log2: scenario.sources_log2,
        per_second: PER_SECOND,
        overridden: None,
        sink: Sink::Everything,
        draw: true,
    }
}

/// A program to run repeatedly.
#[derive(Clone, Copy)]
struct Run<'a> {
    program: &'a LoadedProgram,
    frame: &'a [u8],
    cpus: usize,
    interrupt: &'a Interrupt,
}

impl Run<'_> {
    /// Runs the program on every CPU; returns the nanoseconds per run, averaged over the CPUs.
    fn until(&self, time: Duration, times: u64) -> Result<f64> {
        let costs: Vec<Result<f64>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.cpus)
                .map(|cpu| scope.spawn(move || self.on(cpu, time, times)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
                .collect()
        });
        let costs = costs.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(costs.iter().sum::<f64>() / to_f64(u64::try_from(costs.len())?))
    }

    fn on(&self, cpu: usize, time: Duration, times: u64) -> Result<f64> {
        cpu::pin(cpu)?;
        let start = Instant::now();
        let (mut ran, mut took) = (0_u64, Duration::ZERO);
        while ran < times && start.elapsed() < time {
            self.interrupt.check()?;
            took += self.program.run(self.frame, TIMES)?;
            ran += u64::from(TIMES);
        }
        Ok(took.as_secs_f64() * 1e9 / to_f64(ran.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use bench_common::Layout;

    use super::*;
    use crate::contender::CONTENDERS;

    /// Finds a program that the verifier refuses before a measurement does.
    #[test]
    fn every_program_loads_and_runs() -> Result<()> {
        let scenario = Scenario::new(Layout::V4, 0);
        let (terms, frame) = (terms(&scenario), scenario.frame()?);
        let interrupt = Interrupt::watch()?;
        for contender in CONTENDERS.iter().filter(|contender| contender.is_program()) {
            let loaded = contender.load(&terms).context(contender.name)?;
            let run = Run {
                program: &loaded.context("no program")?,
                frame: &frame,
                cpus: 1,
                interrupt: &interrupt,
            };
            run.until(LONGEST_WARM_UP, 1).context(contender.name)?;
        }
        Ok(())
    }
}
