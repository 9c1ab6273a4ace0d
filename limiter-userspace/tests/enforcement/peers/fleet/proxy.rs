//! A slow path to the store.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result};
use testbed::Namespace;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

/// Forwards connections from one port of a namespace to another, with a delay in each direction. Ends on
/// drop.
pub(super) struct Proxy {
    delay: Delay,
    ending: Arc<Notify>,
    thread: Option<JoinHandle<Result<()>>>,
}

/// In milliseconds.
type Delay = Arc<AtomicU64>;

impl Proxy {
    pub(super) fn start(namespace: &Namespace, from: u16, to: u16) -> Result<Self> {
        let (delay, ending) = (Delay::default(), Arc::new(Notify::new()));
        let listener = namespace.enter(|| {
            let listener = std::net::TcpListener::bind(("0.0.0.0", from))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        })?;
        let (namespace, to) = (namespace.clone(), SocketAddr::from(([127, 0, 0, 1], to)));
        let (its_delay, its_ending) = (Arc::clone(&delay), Arc::clone(&ending));
        let work = move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener)?;
                tokio::select! {
                    ended = listen(listener, to, its_delay) => ended,
                    () = its_ending.notified() => Ok(()),
                }
            })
        };
        let thread = thread::spawn(move || namespace.enter(work));
        Ok(Self {
            delay,
            ending,
            thread: Some(thread),
        })
    }

    /// Sets the delay of each direction, for all bytes from now on.
    pub(super) fn delay(&self, delay: Duration) {
        let ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.delay.store(ms, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ending.notify_one();
        if let Some(thread) = self.thread.take() {
            // The nodes have reported the errors.
            let _ = thread.join();
        }
    }
}

async fn listen(listener: TcpListener, to: SocketAddr, delay: Delay) -> Result<()> {
    loop {
        let (near, _) = listener.accept().await.context("cannot accept")?;
        // Without a store the connection ends at once.
        let Ok(far) = TcpStream::connect(to).await else {
            continue;
        };
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let (from_near, to_near) = near.into_split();
        let (from_far, to_far) = far.into_split();
        tokio::spawn(carry(from_near, to_far, Arc::clone(&delay)));
        tokio::spawn(carry(from_far, to_near, Arc::clone(&delay)));
    }
}

/// Carries bytes, each after its delay, until either side ends.
async fn carry(
    mut from: impl AsyncRead + Unpin + Send + 'static,
    mut to: impl AsyncWrite + Unpin,
    delay: Delay,
) {
    let (sender, mut some) = mpsc::unbounded_channel();
    let reading = tokio::spawn(async move {
        let mut bytes = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut bytes).await {
            let delay = Duration::from_millis(delay.load(Ordering::Relaxed));
            let due = Instant::now() + delay;
            if sender.send((due, bytes[..length].to_vec())).is_err() {
                return;
            }
        }
    });
    while let Some((due, bytes)) = some.recv().await {
        sleep_until(due).await;
        if to.write_all(&bytes).await.is_err() {
            break;
        }
    }
    reading.abort();
    // The other side may have ended already.
    let _ = to.shutdown().await;
}
