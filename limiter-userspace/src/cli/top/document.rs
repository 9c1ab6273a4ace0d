//! `limiter top --json`.

use super::{
    args::TopArgs,
    order::Order,
    rates::Rates,
    snapshot::{Query, Snapshot, fetch},
};
use crate::cli::{
    output::print_json,
    repeat::{EndSignals, repeat},
};

/// Prints one document per line until the user ends it or the daemon is gone.
pub(super) async fn print(args: TopArgs) -> anyhow::Result<()> {
    let query = Query {
        interval: args.interval,
        by: args.rows.by,
        limit: args.rows.limit,
        explain: None,
        bans_of: None,
    };
    let read = args.read;
    let fetch = move || fetch(&read, query.clone());
    let order = Order::by(args.sort);
    let mut rates = Rates::default();
    let show = |snapshot: Snapshot| {
        let mut sample = rates.advance(snapshot);
        let rows = &mut sample.offenders;
        rows.sort_by(|one, other| order.compare(one, other));
        rows.truncate(args.count as usize);
        print_json(&sample)
    };
    repeat(&mut EndSignals::new()?, args.interval, fetch, show).await
}
