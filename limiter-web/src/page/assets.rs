//! The page's style, script and plot, embedded in the binary.

use axum::{
    http::{
        HeaderName,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
};

/// The query of links to assets: browsers fetch another build's files anew.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) struct Asset {
    pub(super) path: &'static str,
    content_type: &'static str,
    content: &'static str,
}

/// All assets. The plot is uPlot, from vendor/.
pub(super) const ASSETS: [Asset; 5] = [
    Asset {
        path: "/page.css",
        content_type: "text/css; charset=utf-8",
        content: include_str!("assets/page.css"),
    },
    Asset {
        path: "/page.js",
        content_type: "text/javascript; charset=utf-8",
        content: include_str!("assets/page.js"),
    },
    Asset {
        path: "/icon.svg",
        content_type: "image/svg+xml",
        content: include_str!("assets/icon.svg"),
    },
    Asset {
        path: "/uplot.css",
        content_type: "text/css; charset=utf-8",
        content: include_str!("../../vendor/uplot/uPlot.min.css"),
    },
    Asset {
        path: "/uplot.js",
        content_type: "text/javascript; charset=utf-8",
        content: include_str!("../../vendor/uplot/uPlot.iife.min.js"),
    },
];

impl Asset {
    pub(super) fn response(&self) -> Response {
        let headers: [(HeaderName, &str); 2] = [
            (CONTENT_TYPE, self.content_type),
            (CACHE_CONTROL, "max-age=3600"),
        ];
        (headers, self.content).into_response()
    }
}
