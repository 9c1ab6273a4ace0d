//! HTTP for untrusted clients: a connection carries one request with a head of a few kilobytes, and ends soon,
//! even if the client stalls.

use std::{
    convert::Infallible,
    error::Error,
    io,
    net::{self, IpAddr, Ipv6Addr, SocketAddr},
    os::unix,
    path::Path,
    time::Duration,
};

use hyper::{
    Request, Response,
    body::{Body, Incoming},
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    time::{interval, timeout},
};
use tracing::debug;

use limiter_protocol::{
    control::{SocketFile, accepted::Connections},
    web::{CHECK_IN_INTERVAL, ServerThread},
};

/// Tells the watchdog that the thread works.
pub(crate) type CheckIn = Box<dyn Fn() + Send + Sync>;

const MOST: usize = 64;

/// The timeout of a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest life of a connection.
pub(crate) const TO_END: Duration = Duration::from_secs(30);

/// The largest head of a request, in bytes, and the most header fields.
const MAX_HEAD: usize = 8 << 10;
const MAX_FIELDS: usize = 64;

/// The client, as far as the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    /// A host's address, or for IPv6 its network, since one host may have a whole network.
    Address(IpAddr),
    /// A user of this machine; `None`: unknown.
    User(Option<u32>),
}

impl Peer {
    /// The bits of an IPv6 address that name a network.
    const NETWORK: u32 = 64;

    fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(v6) => {
                Ipv6Addr::from_bits(v6.to_bits() >> Self::NETWORK << Self::NETWORK).into()
            }
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

/// A bound port or socket that does not serve yet.
pub(crate) enum Port {
    Tcp(net::TcpListener),
    Unix(SocketFile, unix::net::UnixListener),
}

/// A listener on the serving thread's runtime.
pub(crate) enum BoundListener {
    Tcp(TcpListener),
    /// Only for users that the socket file admits.
    Unix(UnixListener, SocketFile),
}

impl Port {
    /// Binds a port; also returns its address, with the real port in place of 0.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<(SocketAddr, Self)> {
        let listener = net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok((listener.local_addr()?, Self::Tcp(listener)))
    }

    /// Binds a socket, for root and the members of a group.
    pub(crate) fn bind_socket(path: &Path, group: Option<&str>) -> io::Result<Self> {
        let (file, listener) = SocketFile::bind_for(path, group)?;
        Ok(Self::Unix(file, listener))
    }

    /// Prepares to serve on a runtime of its own; returns the work of the thread.
    pub(crate) fn serve(
        self,
        thread: ServerThread,
        serve: impl AsyncFnOnce(BoundListener, &CheckIn) -> Infallible + Send + 'static,
    ) -> io::Result<Box<dyn FnOnce() + Send>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            match self {
                Self::Tcp(listener) => BoundListener::Tcp(TcpListener::from_std(listener)?),
                Self::Unix(file, listener) => {
                    BoundListener::Unix(UnixListener::from_std(listener)?, file)
                }
            }
        };
        let ServerThread { check_in, end } = thread;
        Ok(Box::new(move || {
            runtime.block_on(async {
                tokio::select! {
                    never = serve(listener, &check_in) => match never {},
                    () = end.notified() => {}
                }
            });
        }))
    }
}

/// A service that answers requests without reading their bodies.
pub(crate) trait HttpService:
    Service<
        Request<Incoming>,
        Response = Response<Self::Content>,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + 'static
{
    /// The body of its responses.
    type Content: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;
}

impl<S, B> HttpService for S
where
    S: Service<
            Request<Incoming>,
            Response = Response<B>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    type Content = B;
}

/// Serves forever on a port that messages call `name`.
pub(crate) async fn serve(
    listener: BoundListener,
    name: &'static str,
    check_in: &CheckIn,
    service: impl HttpService,
) -> Infallible {
    match listener {
        BoundListener::Tcp(listener) => {
            let next = async || {
                let (stream, address) = listener.accept().await?;
                Ok((stream, Peer::at(address.ip())))
            };
            accept(next, name, check_in, service).await
        }
        BoundListener::Unix(listener, file) => {
            // Other users' connections are closed at once, without a response.
            let next = async || loop {
                let (stream, _) = listener.accept().await?;
                if file.admits(&stream).unwrap_or(false) {
                    let user = stream.peer_cred().map(|peer| peer.uid());
                    break Ok((stream, Peer::User(user.ok())));
                }
            };
            accept(next, name, check_in, service).await
        }
    }
}

async fn accept<S>(
    mut next: impl AsyncFnMut() -> io::Result<(S, Peer)>,
    name: &'static str,
    check_in: &CheckIn,
    service: impl HttpService,
) -> Infallible
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut connections = Connections::new(name, MOST);
    let mut check_ins = interval(CHECK_IN_INTERVAL);
    loop {
        tokio::select! {
            _ = check_ins.tick() => check_in(),
            (stream, peer) = connections.accept(&mut next) => {
                connections.serve(converse(stream, peer, name, service.clone())).await;
            }
        }
    }
}

/// Answers one request, and ends the connection in time.
async fn converse(
    client: impl AsyncRead + AsyncWrite + Unpin,
    peer: Peer,
    name: &'static str,
    service: impl HttpService,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .keep_alive(false)
        .max_header_size(MAX_HEAD)
        .max_buf_size(2 * MAX_HEAD)
        .max_headers(MAX_FIELDS)
        .serve_connection(
            TokioIo::new(client),
            service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(peer);
                service.call(request)
            }),
        );
    match timeout(TO_END, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!("a connection to {name}: {error}"),
        Err(_) => debug!("a connection to {name}: closed after {TO_END:?}"),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use hyper::body::Bytes;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        time::{Instant, sleep},
    };

    use super::*;

    /// The length of a response, in bytes: more than is in flight at once.
    const LONG: usize = 100_000;

    /// The most bytes in flight.
    const ON_THE_WAY: usize = 1_000;

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

    /// Returns how long the server keeps a connection to a client with this behaviour.
    async fn lasts<C: Future>(client: impl FnOnce(DuplexStream) -> C) -> Duration {
        let (ours, theirs) = duplex(ON_THE_WAY);
        let begun = Instant::now();
        let service = service_fn(async |_| {
            let text = Bytes::from(vec![b'x'; LONG]);
            Ok::<_, Infallible>(Response::new(Full::new(text)))
        });
        let conversation = converse(ours, Peer::User(None), "the tests' port", service);
        tokio::select! {
            () = conversation => {}
            _ = client(theirs) => panic!("the client has ended first"),
        }
        begun.elapsed()
    }

    /// Returns whether it took this long, give or take the timer's milliseconds.
    fn is_about(took: Duration, expected: Duration) -> bool {
        took.abs_diff(expected) < Duration::from_millis(10)
    }

    #[test]
    fn a_host_is_one_peer_whatever_address_it_takes() {
        let at = |text: &str| Peer::at(text.parse().unwrap());
        assert_eq!(at("2001:db8:0:1::1"), at("2001:db8:0:1:ffff::2"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("2001:db8:0:1::1"), at("2001:db8:0:2::1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_response_is_left() {
        let took = lasts(async |mut client| {
            client.write_all(REQUEST).await.unwrap();
            sleep(2 * TO_END).await;
        })
        .await;
        assert!(is_about(took, TO_END), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_left() {
        let took = lasts(async |mut client| {
            client.write_all(REQUEST).await.unwrap();
            for _ in 0..2 * TO_END.as_secs() {
                client.read_u8().await.unwrap();
                sleep(Duration::from_secs(1)).await;
            }
        })
        .await;
        assert!(is_about(took, TO_END), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_ask_is_left_sooner() {
        let took = lasts(async |mut client| {
            client.write_all(b"GET").await.unwrap();
            sleep(2 * TO_END).await;
        })
        .await;
        assert!(is_about(took, HEAD_TIMEOUT), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_has_its_response() {
        let took = lasts(async |mut client| {
            client.write_all(REQUEST).await.unwrap();
            let mut response = Vec::new();
            client.read_to_end(&mut response).await.unwrap();
            assert!(response.ends_with(&vec![b'x'; LONG]));
            sleep(TO_END).await;
        })
        .await;
        assert!(is_about(took, Duration::ZERO), "{took:?}");
    }
}
