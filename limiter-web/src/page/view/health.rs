//! The section on the limiter's health: the enforced policy, the interfaces and warnings.

use limiter_protocol::{InterfaceStatus, StateStatus, Status};
use limiter_report::{
    health::{Level, all, why_detached},
    numbers::{Subject, words},
    render::{count, counted},
};
use maud::{Markup, html};

use super::{
    super::snapshot::Snapshot,
    parts::{NONE, time},
};

pub(super) fn section(snapshot: &Snapshot) -> Markup {
    let status = &snapshot.status;
    let warnings = all(status);
    html! {
        section #health data-live aria-labelledby="health-title" {
            h2 #health-title { "Health" }
            @if warnings.is_empty() {
                p.ok { "All is well." }
            } @else {
                ul.warnings {
                    @for (level, warning) in &warnings {
                        li class=(if *level == Level::Critical { "critical" } else { "warning" }) {
                            strong { (level.name()) } " " (warning)
                        }
                    }
                }
            }
            dl {
                @for interface in &status.interfaces {
                    dt { (interface.name) }
                    dd { (attached(interface)) }
                }
                @for pattern in status.daemon.iter().flat_map(|daemon| &daemon.unmatched) {
                    dt { (pattern) }
                    dd { "waiting for an interface of such a name" }
                }
                dt { "Policy" }
                dd {
                    (status.policy.generation) ", loaded " (time(status.policy.loaded_at)) ": "
                    (words(status, Subject::Policy))
                }
                dt { "Buckets" }
                dd {
                    (status.buckets.settings.store.name()) ", up to "
                    (count(status.buckets.settings.capacity.into())) ", " (words(status, Subject::Buckets))
                }
                @if let Some(directory) = &status.pinned {
                    dt { "Pinned in" }
                    dd { (directory.display()) }
                }
                (daemon(status))
                dt { "Read" }
                dd { (time(snapshot.at)) }
            }
        }
    }
}

fn attached(interface: &InterfaceStatus) -> Markup {
    html! {
        @if let Some(why) = why_detached(interface) {
            strong { "NOT attached" } ": " (why)
        } @else {
            (interface.mode.as_deref().unwrap_or(NONE)) " mode"
            @if let Some(since) = interface.since {
                " since " (time(since))
            }
            @if let Some(reason) = &interface.fell_back {
                ": slow, the driver refused native mode (" (reason) ")"
            }
        }
    }
}

fn daemon(status: &Status) -> Markup {
    let Some(daemon) = &status.daemon else {
        return html! {};
    };
    let reloads = &daemon.reloads;
    html! {
        dt { "State" }
        dd { (state(daemon.state.as_ref())) }
        dt { "Guard" }
        dd {
            @if daemon.guard.error.is_some() {
                "blind"
            } @else {
                "protects " (counted(daemon.guard.protected, "address"))
            }
        }
        dt { "Reloads" }
        dd {
            (count(reloads.succeeded)) " succeeded, " (count(reloads.failed)) " failed"
            @if let Some(last) = &reloads.last {
                ", last " (time(last.at))
            }
        }
    }
}

fn state(state: Option<&StateStatus>) -> Markup {
    html! {
        @match state {
            None => "no file: nothing outlives the daemon",
            Some(state) => {
                (state.file.display())
                @match state.saved_at {
                    Some(at) => { ", saved " (time(at)) }
                    None => ", not saved yet",
                }
            }
        }
    }
}
