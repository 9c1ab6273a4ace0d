//! The benchmark: the limiter beside what else there is, on one machine in one run.

mod contender;
mod cost;
mod cpu;
mod drawing;
mod generator;
mod interrupt;
mod lane;
mod objects;
mod rate;
mod scenario;
mod stats;
mod tool;

use std::time::Duration;

use bench_common::Layout;

fn main() -> anyhow::Result<()> {
    let interrupt = interrupt::Interrupt::watch()?;
    let contenders: Vec<_> = contender::CONTENDERS
        .into_iter()
        .filter(|c| std::env::args().skip(2).any(|n| c.name.contains(&n)))
        .collect();
    for power in std::env::args().nth(1).unwrap().split(',') {
        let scenario = scenario::Scenario::new(Layout::V4, power.parse()?);
        let time = Duration::from_millis(300);
        for r in rate::measure(&contenders, &scenario, 3, time, &interrupt, |t| {
            eprintln!("{t}")
        })? {
            println!(
                "{scenario} {}: {:.2} Mpps {:.0}% lost {}",
                r.contender,
                r.rate.median / 1e6,
                r.rate.percent(),
                r.lost_ppm
            );
        }
        for r in cost::measure(&contenders, &scenario, 3, time, &interrupt, |t| {
            eprintln!("{t}")
        })? {
            println!(
                "{scenario} {}: {:.0} ns {:.0}%",
                r.contender,
                r.ns.median,
                r.ns.percent()
            );
        }
    }
    Ok(())
}
