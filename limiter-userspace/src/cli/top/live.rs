//! `limiter top` on a terminal.

use std::{future::pending, ops::ControlFlow};

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{MissedTickBehavior, interval},
};

use super::{args::TopArgs, keys, model::Model, screen::Screen, snapshot::fetch};
use crate::cli::repeat::EndSignals;

/// Shows the offenders until the user quits or the daemon is gone.
pub(super) async fn show(args: TopArgs) -> anyhow::Result<()> {
    let mut end = EndSignals::new()?;
    let mut ticks = interval(args.interval);
    // After a late response, wait a whole interval.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ask = |model: &Model| {
        let (read, query) = (args.read.clone(), model.query());
        spawn_blocking(move || fetch(&read, query))
    };
    let mut model = Model::new(&args);
    // Before anything is drawn, because without a daemon there is nothing to show.
    model.take(tokio::select! {
        snapshot = ask(&model) => snapshot??,
        () = end.wanted() => return Ok(()),
    });
    ticks.reset();
    let mut asking = None;
    let mut changing = None;
    let mut due = false;
    let mut screen = Screen::enter()?;
    let mut events = EventStream::new();
    loop {
        screen.show(&model)?;
        if changing.is_none()
            && let Some(wanted) = model.wanted()
        {
            let read = args.read.clone();
            changing = Some(spawn_blocking(move || wanted.make(&read)));
        }
        if asking.is_none() && (due || model.is_waiting()) {
            asking = Some(ask(&model));
            due = false;
            ticks.reset();
        }
        tokio::select! {
            _ = ticks.tick(), if !model.paused => due = true,
            snapshot = wait_for_response(&mut asking) => {
                asking = None;
                model.take(snapshot?);
            }
            outcome = wait_for_response(&mut changing) => {
                changing = None;
                // The user reads refusals as well.
                model.show_outcome(outcome.map_err(|error| format!("{error:#}")));
            }
            event = events.next() => match event {
                Some(Ok(event)) => if press(&mut model, &event).is_break() {
                    return Ok(());
                },
                // The terminal is gone, which ends the command normally.
                Some(Err(_)) | None => return Ok(()),
            },
            () = end.wanted() => return Ok(()),
        }
    }
}

/// Waits for the daemon's response; forever without a pending request.
async fn wait_for_response<T>(
    asking: &mut Option<JoinHandle<anyhow::Result<T>>>,
) -> anyhow::Result<T> {
    match asking {
        Some(response) => response.await?,
        None => pending().await,
    }
}

/// Applies the action of a key; other events only cause a redraw.
fn press(model: &mut Model, event: &Event) -> ControlFlow<()> {
    for key in event.as_key_press_event().into_iter().flat_map(keys::apart) {
        if let Some(action) = keys::action(key, model.front()) {
            model.apply(action)?;
        }
    }
    ControlFlow::Continue(())
}
