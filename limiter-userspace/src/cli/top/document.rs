//! `limiter top --json`.

use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use super::{
    TopArgs,
    order::Order,
    rates::Rates,
    snapshot::{Query, fetch},
};
use crate::cli::{end::End, print_json};

/// Prints a document a line until the user ends it, or the daemon is gone.
pub(super) async fn print(args: TopArgs) -> anyhow::Result<()> {
    let mut end = End::new()?;
    let mut ticks = interval(args.interval);
    // After a late answer not two at once.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let order = Order::by(args.sort);
    let mut rates = Rates::default();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = end.wanted() => return Ok(()),
        }
        let socket = args.control.socket.clone();
        let query = Query {
            interval: args.interval,
            by: args.by,
            limit: args.limit.clone(),
            explain: None,
        };
        let snapshot = tokio::select! {
            snapshot = spawn_blocking(move || fetch(&socket, query)) => snapshot??,
            () = end.wanted() => return Ok(()),
        };
        let mut sample = rates.advance(snapshot);
        sample
            .offenders
            .sort_by(|one, other| order.compare(one, other));
        sample.offenders.truncate(args.count as usize);
        print_json(&sample)?;
    }
}
