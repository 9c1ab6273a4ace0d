//! A crowd that fills the metrics' port.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use testbed::{Crowd, Sizes};

use super::{PATIENCE, allow, descriptors, without_a_lapse};
use crate::{
    pinned::{METRICS, Pinned, metrics},
    sieve::{self, flood},
    wait_for,
};

#[test]
fn a_crowd_at_the_metrics_holds_nothing_up() -> Result<()> {
    const SIZES: Sizes = Sizes {
        idle: 1_000,
        slow: 200,
        busy: 50,
    };
    let pinned = Pinned::start(sieve::CONFIGURATION)?;
    allow(&pinned, 1_024)?;
    flood(&pinned, || {
        without_a_lapse(&pinned, || {
            let crowd = Crowd::gather(&pinned.pair.server, METRICS.into(), SIZES);
            // A server that falls behind shows it in later answers.
            let until = Instant::now() + PATIENCE;
            while crowd.arrived() < SIZES.idle + SIZES.slow && Instant::now() < until {
                thread::sleep(Duration::from_millis(20));
            }
            let until = Instant::now() + Duration::from_secs(5);
            let (mut longest, mut most) = (Duration::ZERO, 0);
            for number in 0.. {
                let begun = Instant::now();
                pinned.limiter.status()?;
                longest = longest.max(begun.elapsed());
                let address = format!("192.0.2.{}", number % 256);
                pinned.limiter.show(&["ban", &address])?;
                most = most.max(descriptors(&pinned)?);
                if Instant::now() > until {
                    break;
                }
            }
            println!(
                "{} arrived, {} answers to the busy; status took {longest:?} at most; {most} descriptors",
                crowd.arrived(),
                crowd.answers()
            );
            ensure!(longest < PATIENCE, "status took {longest:?}");
            ensure!(most < 512, "{most} descriptors are open");
            crowd.disperse()
        })
    })?;
    let log = pinned.limiter.log()?;
    ensure!(!log.contains("escriptor"), "{log}");
    ensure!(!log.contains("open files"), "{log}");
    // Once they have left, Prometheus is answered.
    wait_for(|| Ok(metrics(&pinned.pair.server).is_ok_and(|told| told.contains("# EOF"))))
}
