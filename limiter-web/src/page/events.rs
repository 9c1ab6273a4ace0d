//! The numbers of each second, and the history, as JSON for the page's script.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use limiter_common::reason::{Action, Reason};
use limiter_protocol::web::IncidentLine;
use serde::Serialize;
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, timeout_at},
};

use super::{
    history::{ByReason, Ring, Slot},
    recorder::RecorderState,
};
use crate::http::TO_END;

/// The length of a stream. It ends before the server closes its connection, and browsers reconnect.
const LASTS: Duration = TO_END.saturating_sub(Duration::from_secs(3));

/// The pause before browsers reconnect.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct RateEvent<'r> {
    at: i64,
    passed: f64,
    dropped: f64,
    /// Packets per second by reason.
    rates: BTreeMap<&'r str, f64>,
    /// Packets by reason so far.
    packets: BTreeMap<&'r str, u64>,
}

/// Returns the newest second's numbers; `None`: there are none yet.
pub(super) fn event(recorded: &RecorderState, counted: &ByReason) -> Option<String> {
    let slot = recorded.history.seconds().slots().next_back()?;
    let total = |action| rounded(sum(slot, recorded.malformed, action));
    let each = || Reason::ALL.iter().enumerate();
    serde_json::to_string(&RateEvent {
        at: slot.at,
        passed: total(Action::Pass),
        dropped: total(Action::Drop),
        rates: each()
            .map(|(number, reason)| (reason.name(), rounded(slot.rate(number))))
            .filter(|(_, rate)| *rate > 0.0)
            .collect(),
        packets: each()
            .map(|(number, reason)| (reason.name(), counted[number]))
            .filter(|(_, packets)| *packets > 0)
            .collect(),
    })
    .ok()
}

/// Streams the events until the connection's time is over or another stream takes its slot.
pub(super) fn stream(
    events: watch::Receiver<Arc<str>>,
    ended: oneshot::Receiver<Infallible>,
) -> impl Stream<Item = Result<Event, axum::Error>> {
    let ends_at = Instant::now() + LASTS;
    stream::unfold((events, ended), move |(mut events, mut ended)| async move {
        tokio::select! {
            changed = timeout_at(ends_at, events.changed()) => changed.ok()?.ok()?,
            _ = &mut ended => return None,
        }
        let text = Arc::clone(&events.borrow_and_update());
        let event = Event::default().retry(RETRY).data(text);
        Some((Ok(event), (events, ended)))
    })
}

#[derive(Serialize)]
struct Chart {
    /// The length of a slot, in seconds.
    step: i64,
    times: Vec<i64>,
    series: Vec<Series>,
    incidents: Vec<Incident>,
}

#[derive(Serialize)]
struct Series {
    name: &'static str,
    verdict: &'static str,
    /// Packets per second.
    rates: Vec<f64>,
}

#[derive(Serialize)]
struct Incident {
    at: i64,
    text: String,
}

/// Returns a part of the history: the sums of passed and dropped packets, and each reason for drops.
pub(super) fn history(
    ring: &Ring,
    malformed: Action,
    incidents: Vec<IncidentLine>,
) -> serde_json::Result<String> {
    let total = |action: Action, name| Series {
        name,
        verdict: action.name(),
        rates: (ring.slots())
            .map(|slot| rounded(sum(slot, malformed, action)))
            .collect(),
    };
    let by_reason = Reason::ALL
        .iter()
        .enumerate()
        .filter_map(|(number, reason)| {
            let rates: Vec<_> = ring
                .slots()
                .map(|slot| rounded(slot.rate(number)))
                .collect();
            let is_shown =
                reason.action(malformed) == Action::Drop && rates.iter().any(|rate| *rate > 0.0);
            is_shown.then(|| Series {
                name: reason.name(),
                verdict: Action::Drop.name(),
                rates,
            })
        });
    let totals = [
        total(Action::Pass, "passed"),
        total(Action::Drop, "dropped"),
    ];
    let began = incidents.into_iter().filter(|incident| incident.began);
    serde_json::to_string(&Chart {
        step: ring.step(),
        times: ring.slots().map(|slot| slot.at).collect(),
        series: totals.into_iter().chain(by_reason).collect(),
        incidents: began
            .map(|incident| Incident {
                at: incident.at.as_second(),
                text: incident.text,
            })
            .collect(),
    })
}

/// Returns the sum of packets per second that pass, or that are dropped.
pub(super) fn sum(slot: &Slot, malformed: Action, action: Action) -> f64 {
    let each = Reason::ALL.iter().enumerate();
    let each = each.filter(|(_, reason)| reason.action(malformed) == action);
    each.map(|(number, _)| slot.rate(number)).sum()
}

/// Rounds to digits that a reader uses.
fn rounded(rate: f64) -> f64 {
    if rate >= 10.0 {
        rate.round()
    } else {
        (rate * 10.0).round() / 10.0
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use jiff::Timestamp;

    use super::{
        super::history::{History, REASONS},
        *,
    };

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_before_its_connection_is_closed() {
        let (end, ended) = oneshot::channel();
        let events = watch::Sender::new(Arc::from(""));
        let begun = Instant::now();
        let mut stream = Box::pin(stream(events.subscribe(), ended));
        events.send_replace(Arc::from("{}"));
        assert!(stream.next().await.is_some());
        // No event comes, as when the daemon waits for the kernel.
        assert!(stream.next().await.is_none());
        let lasted = begun.elapsed();
        assert!(lasted < TO_END && lasted > TO_END / 2, "{lasted:?}");
        drop(stream);
        assert!(end.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_another_needs_its_slot() {
        let (end, ended) = oneshot::channel();
        let events = watch::Sender::new(Arc::from(""));
        let begun = Instant::now();
        let mut stream = Box::pin(stream(events.subscribe(), ended));
        drop(end);
        assert!(stream.next().await.is_none());
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[test]
    fn the_plot_has_what_was_dropped_and_why() {
        let mut history = History::new();
        let mut counted = [0; REASONS];
        history.record(100, Duration::from_secs(1), &counted);
        let position = |name| Reason::ALL.iter().position(|reason| reason.name() == name);
        counted[position("over_limit").unwrap()] = 25;
        counted[position("within_limits").unwrap()] = 7;
        history.record(101, Duration::from_secs(1), &counted);
        let line = |began, text: &str| IncidentLine {
            at: Timestamp::from_second(101).unwrap(),
            began,
            text: text.to_owned(),
        };
        let incidents = vec![line(true, "began"), line(false, "ended")];
        let shown = super::history(history.seconds(), Action::Drop, incidents).unwrap();
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let expected = serde_json::json!({
            "step": 1,
            "times": [101],
            "series": [
                {"name": "passed", "verdict": "pass", "rates": [7.0]},
                {"name": "dropped", "verdict": "drop", "rates": [25.0]},
                {"name": "over_limit", "verdict": "drop", "rates": [25.0]},
            ],
            "incidents": [{"at": 101, "text": "began"}],
        });
        assert_eq!(shown, expected);
    }
}
