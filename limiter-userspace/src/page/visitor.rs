//! The rights of browsers on the page's answers; only visitors who know its name have any.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
            X_FRAME_OPTIONS,
        },
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use crate::visitors::Visitors;

/// What a browser may load for the page, and from where: nothing but from here.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (X_FRAME_OPTIONS, "DENY"),
    (CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// Refuses those who may not look, and tells browsers what they may do with the answers.
pub(super) async fn admit(
    State(visitors): State<Arc<Visitors>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = if visitors.may_ask(request.uri(), request.headers()) {
        next.run(request).await
    } else {
        let text = "this page has another name: ask for it by its address or as localhost, or add \
                    the name to `page: {hosts: …}`\n";
        (StatusCode::MISDIRECTED_REQUEST, text).into_response()
    };
    for (name, value) in HEADERS {
        let headers = response.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}
