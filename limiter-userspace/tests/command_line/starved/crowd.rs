//! A crowd of clients fills the port of the metrics or of the page.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testbed::{Crowd, Document, Sizes};

use super::{PATIENCE, allow, descriptors, without_a_lapse};
use crate::{
    page::{PAGE, get},
    pinned::{METRICS, Pinned, metrics},
    sieve::{self, flood},
    wait_for,
};

/// The limit for half of the responses. The slowest one may take [`PATIENCE`].
const MEDIAN: Duration = Duration::from_millis(200);

/// How many requests the daemon gets while the crowd is there.
const QUESTIONS: u8 = 15;

#[test]
fn a_crowd_at_the_metrics_holds_nothing_up() -> Result<()> {
    let pinned = Pinned::start(sieve::CONFIGURATION)?;
    holds_nothing_up(&pinned, METRICS.into(), Document::METRICS)?;
    // Once the crowd has left, Prometheus is answered.
    wait_for(|| {
        Ok(metrics(&pinned.pair.server)
            .is_ok_and(|reported| reported.contains("limiter_build_info")))
    })
}

#[test]
fn a_crowd_at_the_page_holds_nothing_up() -> Result<()> {
    for path in ["/", "/explain?address=10.77.0.2"] {
        let pinned = Pinned::start(&format!("page: on\n{}", sieve::CONFIGURATION))?;
        let document = Document {
            path,
            end: "</html>",
        };
        holds_nothing_up(&pinned, PAGE, document)?;
        wait_for(|| Ok(get(&pinned.pair.server, "/").is_ok()))?;
    }
    Ok(())
}

/// Fails if a crowd that requests a document delays other clients or the daemon's work.
fn holds_nothing_up(pinned: &Pinned, server: SocketAddr, document: Document) -> Result<()> {
    const SIZES: Sizes = Sizes {
        idle: 1_000,
        slow: 200,
        busy: 50,
    };
    allow(pinned, 1_024)?;
    flood(pinned, || {
        without_a_lapse(pinned, || {
            let crowd = Crowd::gather(&pinned.pair.server, server, document, SIZES);
            // A server that falls behind shows it in later responses.
            wait_for(|| Ok(crowd.arrived() == SIZES.total() && crowd.responses() > 0))
                .with_context(|| format!("{} arrived", crowd.arrived()))?;
            let (mut took, mut most) = (Vec::new(), 0);
            for number in 0..QUESTIONS {
                let begun = Instant::now();
                pinned.limiter.status()?;
                took.push(begun.elapsed());
                let address = format!("192.0.2.{number}");
                pinned.limiter.show(&["ban", &address])?;
                most = most.max(descriptors(pinned)?);
            }
            took.sort();
            let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
            println!(
                "{} responses to the busy; status took {median:?} mostly, {longest:?} at most; {most} \
                 descriptors",
                crowd.responses()
            );
            ensure!(median < MEDIAN, "status took {median:?} mostly");
            ensure!(longest < PATIENCE, "status took {longest:?}");
            ensure!(most < 512, "{most} descriptors are open");
            crowd.disperse()
        })
    })?;
    // Errors of accept(2) contain these words.
    let log = pinned.limiter.log()?;
    ensure!(!log.contains("escriptor"), "{log}");
    ensure!(!log.contains("open files"), "{log}");
    Ok(())
}
