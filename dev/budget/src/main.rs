//! Prints the XDP program's cost to the kernel's verifier, for `cargo xtask build-ebpf --budget`.
//!
//! A separate program instead of a command of `limiter`, because only developers of the XDP program
//! need it.

use std::{fs, process::ExitCode, time::Duration};

use anyhow::Result;
use budget::{Cost, MOST_STACK, MOST_VERIFIED, Object};
use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

#[derive(Parser)]
struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The report, as `--json` prints it.
#[derive(Serialize)]
struct Report {
    kernel: String,
    most_verified_instructions: u32,
    most_stack: u32,
    objects: Vec<Cost>,
}

fn main() -> ExitCode {
    let Arguments { json } = Arguments::parse();
    let result = report().and_then(|report| show(&report, json));
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn report() -> Result<Report> {
    let costs = Object::ALL.into_iter().map(budget::measure);
    let costs: Vec<_> = costs.collect::<Result<_>>()?;
    Ok(Report {
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?
            .trim_end()
            .to_owned(),
        most_verified_instructions: MOST_VERIFIED,
        most_stack: MOST_STACK,
        objects: costs.concat(),
    })
}

fn show(report: &Report, json: bool) -> Result<ExitCode> {
    if json {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        println!("the largest policies on Linux {}", report.kernel);
        for cost in &report.objects {
            let Cost {
                object,
                program,
                stack,
                ..
            } = cost;
            println!(
                "\n{program} in {object}\n\n\
                 at most {MOST_VERIFIED} verified instructions:\n\n{}\n\n\
                 at most {MOST_STACK} bytes of stack: {stack}, {}\n\n{}",
                verifications(cost),
                used(*stack, MOST_STACK),
                functions(cost)
            );
        }
    }
    let excesses: Vec<_> = report.objects.iter().flat_map(Cost::excesses).collect();
    if excesses.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("error: over the budget: {}", excesses.join("; "));
    Ok(ExitCode::FAILURE)
}

fn verifications(cost: &Cost) -> String {
    let mut table = table([
        "policy",
        "store",
        "verified",
        "used",
        "translated",
        "verification",
    ]);
    for verification in &cost.verifications {
        let time = Duration::from_nanos(verification.verification_ns);
        let verified = verification.verified_instructions;
        table.add_row([
            verification.policy.to_owned(),
            verification.store.name().to_owned(),
            verified.to_string(),
            used(verified, MOST_VERIFIED),
            verification.translated_instructions.to_string(),
            format!("{} ms", time.as_millis()),
        ]);
    }
    table.trim_fmt()
}

fn used(now: u32, most: u32) -> String {
    format!("{} %", u64::from(now) * 100 / u64::from(most))
}

fn functions(cost: &Cost) -> String {
    let mut table = table(["function", "instructions", "stack", "with callees"]);
    for function in &cost.functions {
        table.add_row([
            function.name.clone(),
            function.instructions.to_string(),
            function.stack.to_string(),
            function.stack_with_callees.to_string(),
        ]);
    }
    table.trim_fmt()
}

/// Returns a table without lines, of a name and numbers.
fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
