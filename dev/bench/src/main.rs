//! The benchmark: compares the limiter with the alternatives, on one machine in one run.
//!
//! `cargo xtask bench` builds and runs it. Everything happens in separate network namespaces, which
//! vanish with the process.

mod contender;
mod cost;
mod cpu;
mod drawing;
mod float;
mod footprint;
mod generator;
mod lane;
mod machine;
mod map_memory;
mod objects;
mod plan;
mod quality;
mod rate;
mod report;
mod results;
mod scenario;
mod service;
mod stats;
mod target;
mod targets;
mod tool;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use testbed::{INTERRUPTED, Interrupt};

use self::{
    contender::CONTENDERS,
    machine::Machine,
    plan::{Measure, Plan},
    results::Results,
    service::{DEFENCES, Measurement, course},
};

#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Arguments {
    /// Measure less, in under three minutes.
    #[arg(long)]
    quick: bool,
    /// Also write all results to a file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the documents of complete measurements into a directory.
    #[arg(long, value_name = "DIRECTORY")]
    docs: Option<PathBuf>,
    /// Measure only contenders and defences with one of these in their names.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
    /// Measure only this; without it, all but real servers.
    #[arg(long, value_name = "WHAT", num_args = 1..)]
    measure: Vec<Measure>,
    /// Measure the service only under floods with one of these in their names.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    floods: Vec<String>,
    /// Measure the service this many times.
    #[arg(long, value_name = "ROUNDS")]
    rounds: Option<usize>,
    /// The limiter's program, for the service.
    #[arg(long, value_name = "FILE")]
    limiter: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let interrupt = match Interrupt::watch() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(&error),
    };
    match run(arguments, &interrupt) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if interrupt.has_arrived() => ExitCode::from(INTERRUPTED),
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

fn run(arguments: Arguments, interrupt: &Interrupt) -> Result<()> {
    // Contenders that lack a command are left out, but every pair of interfaces may need this
    // command.
    if let Some(missing) = tool::missing(&["ethtool"]) {
        bail!("{missing}: `cargo xtask bench` installs it");
    }
    let machine = Machine::this();
    let plan = if arguments.quick {
        Plan::quick(arguments.only)
    } else {
        Plan::full(arguments.only)
    };
    let plan = plan.restricted_to(&arguments.measure);
    ensure!(
        plan.service_rounds > 0 || arguments.floods.is_empty() && arguments.rounds.is_none(),
        "`--floods` and `--rounds` are for `--measure service`"
    );
    let plan = plan.with_service_rounds(arguments.rounds);
    let service = plan.service(&arguments.floods, arguments.limiter)?;
    let mut results = measure(&plan, &service, machine, interrupt)?;
    results.quick = arguments.quick;
    results.targets = targets::judge(&results);
    results.service_targets = targets::of_service(&results.services);
    report::show(&results);
    if let Some(file) = arguments.json {
        write_json(&results, &file)?;
    }
    if let Some(directory) = arguments.docs {
        if plan.is_whole() {
            report::write(&results, &directory)?;
            write_json(&results, &directory.join("benchmarks/raw.json"))?;
        }
        if service.is_whole {
            write_json(&results, &directory.join("benchmarks/service.json"))?;
        }
        if let Some(courses) = &results.course {
            let file = directory.join("flood.svg");
            report::draw_course(courses, &file)?;
            println!("The course of the flood is drawn in {}.", file.display());
        }
    }
    Ok(())
}

fn write_json(results: &Results, file: &Path) -> Result<()> {
    fs::write(file, serde_json::to_string_pretty(results)?)
        .with_context(|| format!("cannot write {}", file.display()))
}

fn measure(
    plan: &Plan,
    service: &Measurement,
    machine: Machine,
    interrupt: &Interrupt,
) -> Result<Results> {
    let bar = progress_bar(plan, service)?;
    let step = |description: &str| {
        if bar.is_hidden() {
            eprintln!("{:>4} s  {description}", bar.elapsed().as_secs());
        }
        bar.set_message(description.to_owned());
        bar.inc(1);
    };
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for flood in &plan.rates {
        let contenders = plan.in_rate(flood);
        rates.extend(rate::measure(
            &contenders,
            flood,
            plan.rounds,
            plan.time,
            interrupt,
            step,
        )?);
    }
    for flood in &plan.costs {
        let contenders = plan.in_cost(flood);
        costs.extend(cost::measure(
            &contenders,
            flood,
            plan.rounds,
            plan.time,
            interrupt,
            step,
        )?);
    }
    let qualities = quality::measure(
        &plan.in_quality(),
        &plan::LARGEST,
        plan.quality_rounds,
        plan.quality_time,
        interrupt,
        step,
    )?;
    let services = service.measure(interrupt, step)?;
    let course = plan
        .course
        .then(|| course::measure(service.limiter.as_deref(), interrupt, step));
    bar.finish_and_clear();
    Ok(Results {
        machine,
        quick: false,
        effort: plan.effort(),
        rates,
        costs,
        qualities,
        services,
        course: course.transpose()?,
        footprint: footprint::measure()?,
        missing: CONTENDERS
            .iter()
            .filter_map(|contender| Some((contender.name, contender.missing()?)))
            .collect(),
        missing_defences: DEFENCES
            .iter()
            .filter(|_| service.rounds > 0)
            .filter_map(|defence| {
                Some((defence.name, defence.missing(service.limiter.as_deref())?))
            })
            .collect(),
        targets: Vec::new(),
        service_targets: Vec::new(),
    })
}

fn progress_bar(plan: &Plan, service: &Measurement) -> Result<ProgressBar> {
    let per_contender = plan.rounds + 1;
    let steps = plan
        .rates
        .iter()
        .map(|flood| plan.in_rate(flood).len() * per_contender)
        .sum::<usize>()
        + plan
            .costs
            .iter()
            .map(|flood| plan.in_cost(flood).len() * per_contender)
            .sum::<usize>()
        + plan.in_quality().len() * plan.quality_rounds
        + service.runs()
        + if plan.course { course::runs() } else { 0 };
    ensure!(
        steps > 0,
        "nothing to be measured has such a name; there are:\n{}\n{}",
        CONTENDERS.map(|contender| contender.name).join("\n"),
        DEFENCES.map(|defence| defence.name).join("\n")
    );
    let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}")?;
    Ok(ProgressBar::new(u64::try_from(steps)?).with_style(style))
}
