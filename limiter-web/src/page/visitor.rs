//! Security headers of the page's responses, and the check that a visitor knows its name.

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

/// The origins that a browser may load from: only the page's own.
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

/// Refuses requests by a foreign name, and adds the security headers to all responses.
pub(super) async fn admit(
    State(visitors): State<Arc<Visitors>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = if visitors.is_own_request(request.uri(), request.headers()) {
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
