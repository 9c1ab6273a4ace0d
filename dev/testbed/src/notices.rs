//! A daemon's notices to its service manager by sd_notify(3). The test takes the manager's place.

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

/// Listens to a daemon until dropped. A thread reads all notices: the socket holds few, and a full one would
/// block the daemon.
#[derive(Debug)]
pub(crate) struct Notices {
    socket: Arc<UnixDatagram>,
    /// In a mutex, so that the owner can be shared between threads.
    ready: Mutex<mpsc::Receiver<()>>,
}

impl Notices {
    /// Listens at the path, in place of an earlier daemon's socket.
    pub(crate) fn listen(path: &Path) -> Result<Self> {
        if path.exists() {
            fs::remove_file(path)?;
        }
        let socket = UnixDatagram::bind(path).context("cannot listen for notices")?;
        let socket = Arc::new(socket);
        let (sender, ready) = mpsc::channel();
        let receiver = Arc::clone(&socket);
        thread::spawn(move || {
            let mut notice = [0; 1024];
            // A socket that is shut down returns nothing.
            while let Ok(length @ 1..) = receiver.recv(&mut notice) {
                if notice[..length].starts_with(b"READY=1\n") {
                    // The starter may have given up.
                    let _ = sender.send(());
                }
            }
        });
        let ready = Mutex::new(ready);
        Ok(Self { socket, ready })
    }

    /// Waits for the notice that the daemon enforces and answers. Returns whether it has come within that
    /// time.
    pub(crate) fn wait_ready(&self, within: Duration) -> bool {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.recv_timeout(within).is_ok()
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        // Ends the thread. Shutting down works for a bound socket.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
