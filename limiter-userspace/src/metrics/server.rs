//! The HTTP server. It trusts no client: a connection carries one request, with a head of a few
//! kilobytes and no body, and ends soon whatever the client does.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    time::{interval, timeout},
};
use tracing::debug;

use super::{format::Format, scrape::Scrapes};
use crate::{
    connections::Connections,
    daemon::pulse::{BEAT, Pulse},
};

/// The most connections at once.
const MOST: usize = 64;

/// How long a client may take to state its request.
const TO_ASK: Duration = Duration::from_secs(5);

/// How long a connection may last.
const TO_END: Duration = Duration::from_secs(30);

/// The largest head of a request, in bytes, and the most header fields.
const MAX_HEAD: usize = 8 << 10;
const MAX_FIELDS: usize = 64;

/// Serves forever.
pub(super) async fn serve(
    listener: TcpListener,
    scrapes: Arc<Scrapes>,
    pulse: &Pulse,
) -> Infallible {
    let mut connections = Connections::new("the metrics port", MOST);
    let mut beats = interval(BEAT);
    loop {
        tokio::select! {
            _ = beats.tick() => pulse.beat(),
            stream = connections.accept(async || listener.accept().await) => {
                let scrapes = Arc::clone(&scrapes);
                let answer = move |request: &Request<_>| answer(request, &scrapes);
                connections.serve(converse(stream, answer)).await;
            }
        }
    }
}

/// Answers one request, and ends the connection in time.
async fn converse(
    client: impl AsyncRead + AsyncWrite + Unpin,
    answer: impl Fn(&Request<Incoming>) -> Response<Full<Bytes>>,
) {
    let service = service_fn(|request| {
        let response = answer(&request);
        async { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TO_ASK)
        .keep_alive(false)
        .max_header_size(MAX_HEAD)
        .max_buf_size(2 * MAX_HEAD)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(client), service);
    match timeout(TO_END, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!("metrics connection: {error}"),
        Err(_) => debug!("metrics connection: closed after {TO_END:?}"),
    }
}

fn answer<B>(request: &Request<B>, scrapes: &Scrapes) -> Response<Full<Bytes>> {
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
    match scrapes.text(format) {
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

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        time::{Instant, sleep},
    };

    use super::*;

    /// The bytes of an answer: more than is on the way at once.
    const LONG: usize = 100_000;

    /// How much is on the way at once.
    const ON_THE_WAY: usize = 1_000;

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

    /// Returns how long the server converses with a client that acts like that.
    async fn lasts<C: Future>(client: impl FnOnce(DuplexStream) -> C) -> Duration {
        let (ours, theirs) = duplex(ON_THE_WAY);
        let begun = Instant::now();
        let conversation = converse(ours, |_| {
            response(
                StatusCode::OK,
                Format::Prometheus.media_type(),
                vec![b'x'; LONG].into(),
            )
        });
        tokio::select! {
            () = conversation => {}
            _ = client(theirs) => panic!("the client has ended first"),
        }
        begun.elapsed()
    }

    /// Whether it took this long, but for the timer's milliseconds.
    fn is_about(took: Duration, expected: Duration) -> bool {
        took.abs_diff(expected) < Duration::from_millis(10)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_answer_is_left() {
        let took = lasts(async |mut client| {
            client.write_all(REQUEST).await.unwrap();
            sleep(2 * TO_END).await;
        })
        .await;
        assert!(is_about(took, TO_END), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_left() {
        let took = lasts(async |mut client| {
            client.write_all(REQUEST).await.unwrap();
            for _ in 0..2 * TO_END.as_secs() {
                client.read_u8().await.unwrap();
                sleep(Duration::from_secs(1)).await;
            }
        })
        .await;
        assert!(is_about(took, TO_END), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_ask_is_left_sooner() {
        let took = lasts(async |mut client| {
            client.write_all(b"GET").await.unwrap();
            sleep(2 * TO_END).await;
        })
        .await;
        assert!(is_about(took, TO_ASK), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_has_its_answer() {
        let took = lasts(async |mut client| {
            client.write_all(REQUEST).await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            assert!(answer.ends_with(&vec![b'x'; LONG]));
            sleep(TO_END).await;
        })
        .await;
        assert!(is_about(took, Duration::ZERO), "{took:?}");
    }
}
