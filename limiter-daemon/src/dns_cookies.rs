//! Gives the kernel the data to check DNS cookies: the secrets, which roll over, and the difference of the wall clock
//! from the kernel's clock.
//!
//! The file with the secrets is read again when it changes. If it is bad, the secrets stay. Without a daemon, pinned
//! programs go on with the last secrets and the last difference of the clocks, which changes only when the wall clock
//! is set, or the machine sleeps.

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use limiter_common::cookie::{CookieKeys, Secret};
use limiter_datapath::kernel::{DatapathError, unix_ahead_ns};
use limiter_policy::secrets::{self, Secrets};
use tokio::{task::spawn_blocking, time::timeout};
use tracing::{info, warn};

use super::{shared_datapath::SharedDatapath, watch::files::FileWatch};

/// How often to give the kernel the difference of the clocks.
const INTERVAL: Duration = Duration::from_secs(1);

/// The secrets that cookies are checked with. Debug output does not show them.
#[derive(Default)]
pub(super) struct CookieSecrets(Mutex<SecretState>);

#[derive(Default)]
struct SecretState {
    /// The file with the secrets; `None`: the policy in force names none.
    file: Option<PathBuf>,
    secrets: Vec<Secret>,
    /// Every user of this host can read the file, and the log says so.
    others_can_read: bool,
    /// Why the secrets differ from the file's, or why the kernel does not have them.
    error: Option<String>,
}

impl CookieSecrets {
    /// Returns why the secrets differ from the file's.
    pub(super) fn error(&self) -> Option<String> {
        self.locked().error.clone()
    }

    /// Reads the file that the policy in force names, and gives the secrets to the kernel.
    pub(super) fn read(&self, datapath: &SharedDatapath) {
        let file = file(datapath);
        // Read without the lock, as it may take long.
        let read = file.as_ref().map(|file| secrets::read(file));
        let mut held = self.locked();
        if held.file != file {
            *held = SecretState {
                file,
                ..SecretState::default()
            };
        }
        match read {
            None => {}
            Some(Ok(read)) => held.take(read),
            Some(Err(error)) => held.fail(&error.to_string()),
        }
        drop(held);
        self.write_keys(datapath);
    }

    /// Gives the kernel the secrets, and the present difference of the clocks.
    fn write_keys(&self, datapath: &SharedDatapath) {
        let datapath = datapath.read();
        let Some(source_maps) = datapath.source_maps() else {
            return;
        };
        let mut held = self.locked();
        let keys = if held.file.is_some() {
            CookieKeys::new(&held.secrets, unix_ahead_ns())
        } else {
            CookieKeys::NONE
        };
        if let Err(error) = source_maps.cookies().set(keys) {
            held.fail_to_tell(&error);
        }
    }

    fn locked(&self) -> MutexGuard<'_, SecretState> {
        // A panic elsewhere spoils no secrets.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SecretState {
    fn take(&mut self, read: Secrets) {
        let name = self.name();
        if read.others_can_read && !self.others_can_read {
            warn!(
                "every user of this host can read the file '{name}', and with its secrets make DNS \
                 cookies for any address: `chmod o= {name}`"
            );
        }
        self.others_can_read = read.others_can_read;
        self.error = None;
        if read.secrets != self.secrets {
            let number = read.secrets.len();
            info!(
                secrets = number,
                "DNS cookies are checked with the secrets in the file '{name}' ({number})"
            );
            self.secrets = read.secrets;
        }
    }

    fn fail(&mut self, error: &str) {
        let error = format!("the file '{}' {error}", self.name());
        if self.error.as_ref() != Some(&error) {
            warn!("the secrets of DNS cookies stay as they were: {error}");
        }
        self.error = Some(error);
    }

    fn fail_to_tell(&mut self, error: &DatapathError) {
        let error = error.to_string();
        if self.error.as_ref() != Some(&error) {
            warn!("the kernel does not get the secrets of DNS cookies: {error}");
        }
        self.error = Some(error);
    }

    fn name(&self) -> String {
        let file = self.file.as_ref();
        file.map_or_else(String::new, |file| file.display().to_string())
    }
}

/// Maintains the kernel's data up to date, forever.
pub(super) async fn maintain(
    datapath: &Arc<SharedDatapath>,
    cookies: &Arc<CookieSecrets>,
) -> Infallible {
    let mut watched = None;
    let mut watch = FileWatch::new([].into_iter());
    loop {
        let file = file(datapath);
        let is_new = file != watched;
        if is_new {
            // Watch before reading, so that no change is missed.
            watch.replace(file.clone().into_iter());
            watched = file;
        }
        let is_due = is_new || timeout(INTERVAL, watch.changed()).await.is_ok();
        let (datapath, cookies) = (Arc::clone(datapath), Arc::clone(cookies));
        let reported = spawn_blocking(move || {
            if is_due {
                cookies.read(&datapath);
            } else {
                cookies.write_keys(&datapath);
            }
        });
        // A panic there ends the process.
        let _ = reported.await;
    }
}

/// Returns the file with the secrets that the policy in force names.
fn file(datapath: &SharedDatapath) -> Option<PathBuf> {
    let datapath = datapath.read();
    let file = datapath.manifest().policy.secret_file();
    file.map(ToOwned::to_owned)
}
