//! The metrics' server and unusual HTTP requests.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use anyhow::{Result, ensure};

use crate::{
    GOOD, PATIENCE,
    pinned::{METRICS, Pinned},
};

/// Returns the server's whole response. The server must close the connection.
fn converse(pinned: &Pinned, request: &[u8]) -> Result<String> {
    pinned.pair.server.enter(|| {
        let mut stream = TcpStream::connect(METRICS)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(request);
        let mut response = Vec::new();
        match stream.read_to_end(&mut response) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => return Err(error.into()),
        }
        Ok(String::from_utf8(response)?)
    })
}

#[test]
fn a_connection_has_one_request_of_a_bounded_size() -> Result<()> {
    const HOST: &str = "Host: localhost\r\n\r\n";
    let pinned = Pinned::start(GOOD)?;
    let check = |request: String, first_line: &str, bodies: usize| -> Result<()> {
        let response = converse(&pinned, request.as_bytes())?;
        ensure!(
            response.lines().next().unwrap_or_default() == first_line,
            "{request:.80} got {response:.200}"
        );
        ensure!(
            response.matches("# TYPE limiter_build").count() == bodies,
            "{request:.80}: {response}"
        );
        Ok(())
    };
    check(
        format!("GET /metrics HTTP/1.1\r\n{HOST}"),
        "HTTP/1.1 200 OK",
        1,
    )?;
    check(
        format!("GET /metrics HTTP/1.0\r\n{HOST}"),
        "HTTP/1.0 200 OK",
        1,
    )?;
    // Browsers that visit a site with a name that resolves to this host (DNS rebinding).
    for of_others in [
        "Host: attacker.example\r\n\r\n",
        "Host: localhost\r\nOrigin: http://attacker.example\r\n\r\n",
        "\r\n",
    ] {
        check(
            format!("GET /metrics HTTP/1.0\r\n{of_others}"),
            "HTTP/1.0 421 Misdirected Request",
            0,
        )?;
    }
    check(
        format!("GET /metrics HTTP/1.0\r\nConnection: keep-alive\r\n{HOST}"),
        "HTTP/1.0 200 OK",
        1,
    )?;
    check(
        format!("HEAD /metrics HTTP/1.1\r\n{HOST}"),
        "HTTP/1.1 200 OK",
        0,
    )?;
    check(
        format!("GET /metrics?x HTTP/1.1\r\n{HOST}"),
        "HTTP/1.1 200 OK",
        1,
    )?;
    check(
        format!("GET / HTTP/1.1\r\n{HOST}"),
        "HTTP/1.1 404 Not Found",
        0,
    )?;
    check(
        format!("POST /metrics HTTP/1.1\r\nContent-Length: 1000000000\r\n{HOST}"),
        "HTTP/1.1 405 Method Not Allowed",
        0,
    )?;
    // Pipelined requests.
    check(
        format!("GET /metrics HTTP/1.1\r\n{HOST}").repeat(100),
        "HTTP/1.1 200 OK",
        1,
    )?;
    let long = "x".repeat(1 << 20);
    check(
        format!("GET /metrics HTTP/1.1\r\nX: {long}\r\n{HOST}"),
        "HTTP/1.1 431 Request Header Fields Too Large",
        0,
    )?;
    check(
        format!(
            "GET /metrics HTTP/1.1\r\n{}{HOST}",
            "X: x\r\n".repeat(1_000)
        ),
        "HTTP/1.1 431 Request Header Fields Too Large",
        0,
    )?;
    check(
        "\u{1}\u{2}\r\n\r\n".to_owned(),
        "HTTP/1.1 400 Bad Request",
        0,
    )?;
    // A head that never ends, and a silent client.
    check("GET /metrics HTTP/1.1\r\n".to_owned(), "", 0)?;
    check(String::new(), "", 0)
}
