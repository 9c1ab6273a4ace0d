//! The connections of a listener, of which there are only so many at once. Where there are too many,
//! the oldest one gives way to the new one, and not the other way round: so nobody keeps others out by
//! holding all places, as long as those others ask at once for what they want.

use std::{collections::VecDeque, fs::File, future::Future, io, time::Duration};

use tokio::{
    task::{AbortHandle, yield_now},
    time::sleep,
};
use tracing::debug;

/// How long to wait when there can be no new connection: it has to do with what the system lacks.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections while they are served.
pub(crate) struct Connections {
    most: usize,
    /// The oldest one first.
    open: VecDeque<AbortHandle>,
    /// A descriptor for the connection that comes when there is no other; `None`: it is in use.
    reserve: Option<File>,
    keeps_reserve: bool,
}

impl Connections {
    /// So many at most.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            open: VecDeque::with_capacity(most),
            reserve: None,
            keeps_reserve: false,
        }
    }

    /// So many at most, of which one is there even where the process is out of descriptors.
    pub(crate) fn with_reserve(most: usize) -> Self {
        let mut connections = Self {
            keeps_reserve: true,
            ..Self::new(most)
        };
        connections.keep_reserve();
        connections
    }

    /// The next connection. Errors are waited out.
    pub(crate) async fn accept<S, A>(
        &mut self,
        mut accept: impl AsyncFnMut() -> io::Result<(S, A)>,
    ) -> S {
        loop {
            match accept().await {
                Ok((stream, _)) => {
                    self.keep_reserve();
                    return stream;
                }
                // Its descriptor is free now.
                Err(_) if self.reserve.take().is_some() => {}
                Err(error) => {
                    debug!("cannot accept a connection: {error}");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection, and hangs up on the oldest one if these are too many. Returns once it was
    /// looked at for the first time: who has asked already is not hung up on for those who come next.
    pub(crate) async fn serve(&mut self, serving: impl Future<Output = ()> + Send + 'static) {
        self.open.retain(|connection| !connection.is_finished());
        if self.open.len() >= self.most
            && let Some(oldest) = self.open.pop_front()
        {
            oldest.abort();
        }
        self.open.push_back(tokio::spawn(serving).abort_handle());
        yield_now().await;
    }

    fn keep_reserve(&mut self) {
        if self.keeps_reserve && self.reserve.is_none() {
            self.reserve = File::open("/dev/null").ok();
        }
    }
}
