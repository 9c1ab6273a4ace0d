//! A bound on the length of responses. The library reads a response of any length into memory, and a writer
//! to the store chooses the length of its values.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes of a response, or of the responses to commands sent at once.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// The text of the error after longer responses.
pub(crate) const TOO_LONG: &str = "its response is longer than 16 MiB";

/// A connection to a server.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that ends by an error when the server sends more than [`MOST_BYTES`] after a command.
pub(crate) struct BoundedStream {
    stream: Box<dyn Stream>,
    left: usize,
}

impl BoundedStream {
    pub(crate) fn new(stream: impl Stream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            left: MOST_BYTES,
        }
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        let left = self.left.checked_sub(read);
        self.left =
            left.ok_or_else(|| io::Error::new(io::ErrorKind::ConnectionAborted, TOO_LONG))?;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.left = MOST_BYTES;
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use redis::{AsyncConnectionConfig, aio::MultiplexedConnection, cmd};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use crate::{StoreError, connect, query::query};

    /// Returns the response of a server that sends a value of so many bytes, and how many it sent.
    async fn receive(bytes: usize) -> (Result<Vec<u8>, StoreError>, usize) {
        let (own, mut server) = duplex(4_096);
        let serve = tokio::spawn(async move {
            let mut sent = 0;
            let mut command = [0; 64];
            let _ = server.read(&mut command).await;
            let head = format!("${bytes}\r\n");
            let _ = server.write_all(head.as_bytes()).await;
            while sent < bytes && server.write_all(&[b'x'; 1_024]).await.is_ok() {
                sent += 1_024;
            }
            let _ = server.write_all(b"\r\n").await;
            sent
        });
        // A busy machine is slow.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let settings = connect::plain();
        let connected =
            MultiplexedConnection::new_with_config(&settings, BoundedStream::new(own), config);
        let (mut connection, driver) = connected.await.unwrap();
        let driver = tokio::spawn(driver);
        let mut get = cmd("GET");
        get.arg("key");
        let received = query(&mut connection, &get).await;
        drop(connection);
        let _ = driver.await;
        (received, serve.await.unwrap())
    }

    /// The attack: values of any size. A server sends little more than the bound before the connection ends.
    #[tokio::test]
    async fn no_response_is_longer_than_the_bound() {
        let (received, _) = receive(MOST_BYTES - 1_024).await;
        assert_eq!(received.unwrap().len(), MOST_BYTES - 1_024);
        let (received, sent) = receive(64 * MOST_BYTES).await;
        assert!(matches!(received, Err(StoreError::TooLong)), "{received:?}");
        assert!(sent < MOST_BYTES + 65_536, "{sent}");
    }
}
