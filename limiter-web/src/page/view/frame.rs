//! The frame of each page: head, navigation and footer.

use maud::{DOCTYPE, Markup, html};

use super::super::assets::VERSION;

/// The reload interval of browsers without scripts, in seconds.
const REFRESH: &str = "10";

/// Wraps content into a page.
pub(super) fn frame(title: &str, content: &Markup) -> Markup {
    let version = |path: &str| format!("{path}?{VERSION}");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – limiter" }
                link rel="icon" href=(version("/icon.svg"));
                link rel="stylesheet" href=(version("/uplot.css"));
                link rel="stylesheet" href=(version("/page.css"));
                noscript { meta http-equiv="refresh" content=(REFRESH); }
                script src=(version("/uplot.js")) defer {}
                script src=(version("/page.js")) defer {}
            }
            body {
                header {
                    h1 { "limiter" }
                    nav aria-label="Pages" {
                        a href="/" { "Overview" }
                        a href="/offenders" { "Offenders" }
                        a href="/bans" { "Bans" }
                    }
                    form action="/explain" role="search" {
                        label for="address" { "Address" }
                        input #address name="address" required autocomplete="off"
                            autocapitalize="none" spellcheck="false" size="18";
                        button { "Explain" }
                    }
                    button #pause type="button" hidden { "Pause" }
                }
                main {
                    (content)
                }
                footer {
                    p { "limiter " (VERSION) ". This page only looks: changes are commands." }
                }
            }
        }
    }
}
