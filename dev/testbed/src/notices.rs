//! What a daemon tells its service manager by sd_notify(3), with the test in the manager's place.

use std::{
    fs,
    net::Shutdown,
    os::unix::net::UnixDatagram,
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};

/// Hears a daemon until dropped. A thread reads all notices: the socket holds few, and then a daemon
/// that tells another waits.
#[derive(Debug)]
pub(crate) struct Notices {
    socket: Arc<UnixDatagram>,
    /// In a mutex, so that threads may share what has this.
    ready: Mutex<mpsc::Receiver<()>>,
}

impl Notices {
    /// Listens at the path, in place of a socket of an earlier daemon.
    pub(crate) fn hear(path: &Path) -> Result<Self> {
        if path.exists() {
            fs::remove_file(path)?;
        }
        let socket = UnixDatagram::bind(path).context("cannot listen for notices")?;
        let socket = Arc::new(socket);
        let (tell, ready) = mpsc::channel();
        let heard = Arc::clone(&socket);
        thread::spawn(move || {
            let mut notice = [0; 1024];
            // Nothing comes from a socket that is shut down.
            while let Ok(length @ 1..) = heard.recv(&mut notice) {
                if notice[..length].starts_with(b"READY=1\n") {
                    // The starter may have given up.
                    let _ = tell.send(());
                }
            }
        });
        let ready = Mutex::new(ready);
        Ok(Self { socket, ready })
    }

    /// Returns whether the daemon tells within that time that it enforces and answers.
    pub(crate) fn tell_ready(&self, within: Duration) -> bool {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.recv_timeout(within).is_ok()
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        // Ends the thread. A socket that is bound can be shut down.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
