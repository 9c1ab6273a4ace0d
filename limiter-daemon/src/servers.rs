//! Runs the HTTP servers, each on a thread of its own. The program that starts the daemon passes them in: they read the
//! daemon's view, and neither depends on the other.

use std::{io, sync::Arc};

use limiter_protocol::web::{DaemonView, Listener, ServerThread};
use tokio::sync::Notify;

use super::{
    watchdog::{ThreadWatchdog, WatchedThread},
    worker::Worker,
};

/// Serves on a thread of that name; `watched`: its entry in the watchdog.
pub(super) fn serve(
    listener: Listener,
    view: &Arc<DaemonView>,
    watchdog: &Arc<ThreadWatchdog>,
    name: &str,
    watched: fn(&ThreadWatchdog) -> &WatchedThread,
) -> io::Result<Worker> {
    let end = Arc::new(Notify::new());
    let check_in = {
        let watchdog = Arc::clone(watchdog);
        move || watched(&watchdog).check_in()
    };
    let thread = ServerThread {
        check_in: Box::new(check_in),
        end: Arc::clone(&end),
    };
    let serve = listener(Arc::clone(view), thread)?;
    let watchdog = Arc::clone(watchdog);
    Worker::start(
        name,
        move || {
            serve();
            watched(&watchdog).end();
        },
        move || end.notify_one(),
    )
}
