//! Serves the metrics over HTTP.

use std::{convert::Infallible, sync::Arc};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue},
    service::service_fn,
};

use super::{format::Format, scrape::Scrapes};
use crate::{
    http::{self, BoundListener, CheckIn},
    visitors::Visitors,
};

/// The metrics, and the clients that may request them.
pub(super) struct MetricsService {
    pub(super) scrapes: Scrapes,
    pub(super) visitors: Visitors,
}

pub(super) async fn serve(
    listener: BoundListener,
    asked: Arc<MetricsService>,
    check_in: &CheckIn,
) -> Infallible {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(&request, &asked);
        async { Ok::<_, Infallible>(response) }
    });
    http::serve(listener, "the metrics port", check_in, service).await
}

fn respond<B>(request: &Request<B>, asked: &MetricsService) -> Response<Full<Bytes>> {
    if !asked
        .visitors
        .is_own_request(request.uri(), request.headers())
    {
        return plain(
            StatusCode::MISDIRECTED_REQUEST,
            "the metrics have another name: ask for them by their address or as localhost, or add the \
             name to `metrics: {hosts: …}`\n",
        );
    }
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
        let headers = response.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let accepted = request.headers().get_all(ACCEPT).iter();
    let format = Format::accepted(accepted.filter_map(|field| field.to_str().ok()));
    match asked.scrapes.text(format) {
        Ok(text) => response(StatusCode::OK, format.media_type(), text),
        Err(_) => plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "cannot read the counters: see the log\n",
        ),
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    response(
        status,
        "text/plain; charset=utf-8",
        Bytes::from_static(text.as_bytes()),
    )
}

fn response(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
