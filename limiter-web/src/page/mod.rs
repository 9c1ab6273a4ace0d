//! The daemon's page: the dropped traffic, the reasons and the end of bans, in a browser. It is read-only,
//! answers from the same code as the control channel, and runs on a thread of its own. The worst that a visitor
//! can do is keep this thread busy: it serves few connections, each for a short time. It reads the shared
//! overview at most once a second, and answers single queries one after another, with pauses.

mod assets;
mod events;
mod history;
mod params;
mod rates;
mod recorder;
mod routes;
mod snapshot;
mod streams;
mod turns;
mod view;
mod visitor;

use std::sync::Arc;

use hyper_util::service::TowerToHyperService;
use limiter_policy::config::ListenAddress;
use limiter_protocol::web::{BindResult, DaemonView};

use self::{recorder::Recorder, routes::Pages};
use crate::{
    http::{self, Port},
    visitors::Visitors,
};

/// Binds the port, or the socket for the members of a group. Browsers may also request the page by the names
/// `hosts`.
pub fn bind(
    listen: &ListenAddress,
    hosts: &[String],
    group: Option<&str>,
) -> BindResult<ListenAddress> {
    let (listen, port, address) = match listen {
        ListenAddress::Address(address) => {
            let (address, port) = Port::bind(*address)?;
            (ListenAddress::Address(address), port, Some(address.ip()))
        }
        ListenAddress::Socket(path) => (listen.clone(), Port::bind_socket(path, group)?, None),
    };
    let visitors = Visitors::new(address, hosts.to_vec());
    let serve = Box::new(move |daemon: Arc<DaemonView>, thread| {
        port.serve(thread, async move |listener, check_in| {
            let recorder = Arc::new(Recorder::new(Arc::clone(&daemon)));
            let pages = Arc::new(Pages::new(daemon, Arc::clone(&recorder)));
            let routes = TowerToHyperService::new(routes::routes(pages, visitors));
            tokio::select! {
                never = recorder.record() => never,
                never = http::serve(listener, "the page's port", check_in, routes) => never,
            }
        })
    });
    Ok((listen, serve))
}
