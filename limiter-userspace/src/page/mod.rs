//! The daemon's page: what is dropped, why and until when, in a browser. It only looks, through what
//! the control channel answers from, and runs on a thread of its own. A visitor can do no more than
//! keep that thread busy: it serves a few connections for a short time each, and reads at most once
//! a second what all see, and what one asks for with pauses in between.

mod asked;
mod assets;
mod events;
mod history;
mod rates;
mod recorder;
mod routes;
mod snapshot;
mod turns;
mod view;
mod visitor;

use std::{io, net::SocketAddr, sync::Arc};

use hyper_util::service::TowerToHyperService;

use self::{recorder::Recorder, routes::Pages, visitor::Visitors};
use crate::{
    daemon::{self, Daemon, Worker},
    http::{self, Port},
};

struct Listener {
    port: Port,
    hosts: Vec<String>,
}

/// Binds the port. Browsers may also ask for the page by the names `hosts`.
pub fn bind(address: SocketAddr, hosts: &[String]) -> daemon::Bound {
    Ok(Box::new(Listener {
        port: Port::bind(address)?,
        hosts: hosts.to_vec(),
    }))
}

impl daemon::Listener for Listener {
    fn address(&self) -> SocketAddr {
        self.port.address()
    }

    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Worker> {
        let visitors = Visitors::new(self.port.address().ip(), self.hosts);
        self.port.serve("page", daemon, |pulses| &pulses.page, async |listener, daemon| {
            let recorder = Arc::new(Recorder::new(Arc::clone(daemon)));
            let pages = Arc::new(Pages::new(Arc::clone(daemon), Arc::clone(&recorder)));
            let routes = TowerToHyperService::new(routes::routes(pages, visitors));
            tokio::select! {
                never = recorder.record() => never,
                never = http::serve(listener, "the page's port", &daemon.pulses().page, routes) => never,
            }
        })
    }
}
