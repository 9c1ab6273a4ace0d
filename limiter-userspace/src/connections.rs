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

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot::{self, error::TryRecvError};

    use super::*;

    #[tokio::test]
    async fn the_oldest_gives_way() {
        let mut connections = Connections::new(2);
        let mut open = Vec::new();
        for _ in 0..3 {
            let (is_open, closed) = oneshot::channel::<()>();
            let serving = async move {
                let _is_open = is_open;
                pending::<()>().await;
            };
            connections.serve(serving).await;
            open.push(closed);
        }
        yield_now().await;
        let closed: Vec<_> = open.iter_mut().map(oneshot::Receiver::try_recv).collect();
        let (open, ended) = (TryRecvError::Empty, TryRecvError::Closed);
        assert_eq!(closed, [Err(ended), Err(open.clone()), Err(open)]);
    }

    #[tokio::test]
    async fn whoever_has_asked_is_served_before_the_next_one_comes() {
        let mut connections = Connections::new(1);
        let (told, mut served) = oneshot::channel();
        connections
            .serve(async {
                // The other end is there as long as the test.
                let _ = told.send("an answer");
            })
            .await;
        assert_eq!(served.try_recv(), Ok("an answer"));
    }

    #[tokio::test]
    async fn the_reserve_is_for_the_one_that_comes_when_there_is_no_descriptor() {
        let mut connections = Connections::with_reserve(1);
        let mut refused = 0;
        let accepted = connections
            .accept(async || {
                if refused < 2 {
                    refused += 1;
                    return Err(io::Error::from_raw_os_error(libc::EMFILE));
                }
                Ok((refused, ()))
            })
            .await;
        assert_eq!(accepted, 2);
        assert!(connections.reserve.is_some(), "it is there again");
    }
}
