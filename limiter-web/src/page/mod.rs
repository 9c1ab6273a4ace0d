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

use std::{io, sync::Arc};

use hyper_util::service::TowerToHyperService;
use limiter_daemon as daemon;
use limiter_daemon::{Daemon, Worker};
use limiter_policy::config::ListenAddress;

use self::{recorder::Recorder, routes::Pages};
use crate::{
    http::{self, Port},
    visitors::Visitors,
};

struct Listener {
    port: Port,
    visitors: Visitors,
}

/// Binds the port, or the socket for the members of a group. Browsers may also request the page by the names
/// `hosts`.
pub fn bind(
    listen: &ListenAddress,
    hosts: &[String],
    group: Option<&str>,
) -> daemon::BindResult<ListenAddress> {
    let (listen, port, address) = match listen {
        ListenAddress::Address(address) => {
            let (address, port) = Port::bind(*address)?;
            (ListenAddress::Address(address), port, Some(address.ip()))
        }
        ListenAddress::Socket(path) => (listen.clone(), Port::bind_socket(path, group)?, None),
    };
    let visitors = Visitors::new(address, hosts.to_vec());
    Ok((listen, Box::new(Listener { port, visitors })))
}

impl daemon::Listener for Listener {
    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Worker> {
        let Self { port, visitors } = *self;
        port.serve("page", daemon, |watchdog| &watchdog.page, async |listener, daemon| {
            let recorder = Arc::new(Recorder::new(Arc::clone(daemon)));
            let pages = Arc::new(Pages::new(Arc::clone(daemon), Arc::clone(&recorder)));
            let routes = TowerToHyperService::new(routes::routes(pages, visitors));
            tokio::select! {
                never = recorder.record() => never,
                never = http::serve(listener, "the page's port", &daemon.watchdog().page, routes) => never,
            }
        })
    }
}
