//! The handlers of the page's paths.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Query, State, rejection::QueryRejection},
    http::{StatusCode, header::CONTENT_TYPE},
    middleware,
    response::{IntoResponse as _, Response, Sse},
    routing::get,
};
use limiter_protocol::{Explain, Failure, Grouping, MAX_OFFENDERS, OffenderQuery, web::DaemonView};
use maud::Markup;

use super::{
    assets::ASSETS,
    events,
    params::{BansParams, ExplainParams, HistoryParams, OffendersParams, Window},
    recorder::Recorder,
    snapshot::{self, ReadError, Snapshots},
    streams::Streams,
    turns::Turns,
    view,
    visitor::admit,
};
use crate::{http::Peer, visitors::Visitors};

/// The most rows of a table.
const ROWS: usize = 100;

/// The most requests for one page of bans; each request reads some thousand slots.
const MOST_READS: usize = 8;

/// The state shared by all handlers.
pub(super) struct Pages {
    daemon: Arc<DaemonView>,
    recorder: Arc<Recorder>,
    snapshots: Snapshots,
    turns: Turns,
    streams: Streams,
}

impl Pages {
    pub(super) fn new(daemon: Arc<DaemonView>, recorder: Arc<Recorder>) -> Self {
        Self {
            snapshots: Snapshots::new(Arc::clone(&daemon), Arc::clone(&recorder)),
            daemon,
            recorder,
            turns: Turns::new(),
            streams: Streams::default(),
        }
    }
}

pub(super) fn routes(pages: Arc<Pages>, visitors: Visitors) -> Router {
    let mut router = Router::new()
        .route("/", get(overview))
        .route("/offenders", get(offenders))
        .route("/bans", get(bans))
        .route("/explain", get(explain))
        .route("/events", get(stream))
        .route("/history", get(history));
    for asset in &ASSETS {
        router = router.route(asset.path, get(async || asset.response()));
    }
    router
        .fallback(async || message_page(StatusCode::NOT_FOUND, "There is no such page."))
        .with_state(pages)
        .layer(middleware::from_fn_with_state(Arc::new(visitors), admit))
}

type QueryResult<T> = Result<Query<T>, QueryRejection>;

async fn overview(State(pages): State<Arc<Pages>>) -> Response {
    match pages.snapshots.newest() {
        Ok(snapshot) => html(view::overview(&snapshot)),
        Err(error) => error_page(&error),
    }
}

async fn offenders(
    State(pages): State<Arc<Pages>>,
    asked: QueryResult<OffendersParams>,
) -> Response {
    let Ok(Query(asked)) = asked else {
        return bad_request();
    };
    let query = OffenderQuery {
        limit: Some(asked.limit.clone()).filter(|limit| !limit.is_empty()),
        within_ns: None,
        by: asked.by.unwrap_or(Grouping::Address),
        count: MAX_OFFENDERS,
    };
    let read = pages.turns.take(|| {
        let mut list = (pages.daemon.offenders)(&query).map_err(ReadError::Refused)?;
        let selected = list.offenders.len();
        list.offenders = list
            .offenders
            .into_iter()
            .skip(asked.from)
            .take(ROWS)
            .collect();
        let holds = snapshot::holds(&pages.daemon, &list.offenders)?;
        let next = asked.from.saturating_add(ROWS);
        let next = (next < selected).then_some(next);
        Ok::<_, ReadError>((snapshot::Offenders { list, holds }, next))
    });
    match read.await {
        Ok((offenders, next)) => html(view::offenders(&offenders, &asked, next)),
        Err(ReadError::Refused(Failure(why))) => message_page(StatusCode::OK, &why),
        Err(error) => error_page(&error),
    }
}

async fn bans(State(pages): State<Arc<Pages>>, asked: QueryResult<BansParams>) -> Response {
    let Ok(Query(asked)) = asked else {
        return bad_request();
    };
    let Some(mut query) = asked.query() else {
        let text = "Enter an address or a prefix, such as 192.0.2.0/24, and the name of an origin.";
        return message_page(StatusCode::BAD_REQUEST, text);
    };
    let read = pages.turns.take(|| {
        let mut page = (pages.daemon.bans)(&query)?;
        for _ in 1..MOST_READS {
            if !page.bans.is_empty() || page.next.is_none() {
                break;
            }
            query.position = page.next;
            page = (pages.daemon.bans)(&query)?;
        }
        let found = page.bans.len();
        page.bans = page.bans.into_iter().skip(asked.skip).take(ROWS).collect();
        let rest = asked.skip.saturating_add(ROWS);
        let next = if rest < found {
            Some((query.position, rest))
        } else {
            page.next.map(|next| (Some(next), 0))
        };
        let next = next.map(|(position, skip)| BansParams {
            position,
            skip,
            ..asked.clone()
        });
        Ok::<_, ReadError>((page, next))
    });
    match read.await {
        Ok((page, next)) => html(view::bans(&page, &asked, next.as_ref())),
        Err(error) => error_page(&error),
    }
}

async fn explain(State(pages): State<Arc<Pages>>, asked: QueryResult<ExplainParams>) -> Response {
    let Ok(Query(asked)) = asked else {
        return bad_request();
    };
    let Some(address) = asked.address() else {
        let text = "Enter an IPv4 or IPv6 address, such as 192.0.2.1 or 2001:db8::1.";
        return message_page(StatusCode::BAD_REQUEST, text);
    };
    let call = Explain {
        address,
        to: None,
        requested_name: None,
    };
    let read = pages.turns.take(|| (pages.daemon.explain)(&call));
    match read.await {
        Ok(explanation) => html(view::explanation(&explanation)),
        Err(failure) => error_page(&ReadError::from(failure)),
    }
}

async fn stream(State(pages): State<Arc<Pages>>, Extension(peer): Extension<Peer>) -> Response {
    let ended = pages.streams.add(peer);
    Sse::new(events::stream(pages.recorder.follow(), ended)).into_response()
}

async fn history(State(pages): State<Arc<Pages>>, asked: QueryResult<HistoryParams>) -> Response {
    let Ok(Query(asked)) = asked else {
        return bad_request();
    };
    let incidents = (pages.daemon.incidents)();
    let recorded = pages.recorder.state();
    let ring = match asked.window {
        Window::Minutes => recorded.history.seconds(),
        Window::Day => recorded.history.minutes(),
    };
    match events::history(ring, recorded.malformed, incidents) {
        Ok(json) => ([(CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => error_page(&error),
    }
}

fn html(markup: Markup) -> Response {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8")];
    (headers, markup.into_string()).into_response()
}

fn message_page(status: StatusCode, text: &str) -> Response {
    (status, html(view::message(text))).into_response()
}

fn bad_request() -> Response {
    let text = "The address of this page is wrong: go back to the overview.";
    message_page(StatusCode::BAD_REQUEST, text)
}

fn error_page(error: &impl std::fmt::Display) -> Response {
    message_page(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
}
