//! HTTP/1: the target and the `Host` of the first request (RFC 9112, 3.2 and 3.3).

use httparse::{EMPTY_HEADER, Header, Request, Status, parse_headers};

use crate::{
    name::Name,
    outcome::{NoName, Stop},
};

/// The maximum number of fields in a request; common servers accept a hundred.
const FIELDS: usize = 100;

/// Finds the name in the first bytes of a connection. With `is_all`, no more bytes will come, and a complete line with
/// the name is enough: the bytes behind it are usually a long cookie.
pub(crate) fn read(bytes: &[u8], is_all: bool) -> Result<Name, Stop> {
    let mut fields = [EMPTY_HEADER; FIELDS];
    let mut request = Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(Status::Complete(_)) => name(request.method, request.path, request.headers),
        Ok(Status::Partial) if is_all => {
            let (method, target) = (request.method, request.path);
            let head = [without_last_line(bytes), b"\r\n"].concat();
            let begin = head.iter().position(|byte| *byte == b'\n');
            let mut fields = [EMPTY_HEADER; FIELDS];
            match parse_headers(&head[begin.map_or(0, |begin| begin + 1)..], &mut fields) {
                Ok(Status::Complete((_, fields))) => name(method, target, fields),
                _ => Err(Stop::No(NoName::TooLong)),
            }
        }
        Ok(Status::Partial) => Err(Stop::More),
        Err(_) => Err(unreadable(bytes)),
    }
}

/// The complete lines.
fn without_last_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    &bytes[..end.map_or(0, |end| end + 1)]
}

/// Explains why bytes are not a request. Servers accept more than the standards allow, such as two spaces before the
/// target, or a request of HTTP/0.9 with a name in its target. So bytes with a method and a slash may be a request, and
/// more bytes do not change that after the first line.
fn unreadable(bytes: &[u8]) -> Stop {
    let request = bytes.trim_ascii_start();
    let Some(first) = request.first() else {
        return Stop::More;
    };
    if !first.is_ascii_alphabetic() && !matches!(first, b'_' | b'-') {
        return Stop::No(NoName::Foreign);
    }
    let Some(end) = request.iter().position(|byte| *byte == b'\n') else {
        return Stop::More;
    };
    let mut parts = request[..end].splitn(2, |byte| matches!(byte, b' ' | b'\t'));
    match parts.nth(1) {
        Some(behind_method) if behind_method.contains(&b'/') => Stop::No(NoName::Malformed),
        _ => Stop::No(NoName::Foreign),
    }
}

/// Takes the name from the target if it has one, else from `Host`, which may occur once. If they differ, the request is
/// malformed, because servers disagree on which one counts.
fn name(method: Option<&str>, target: Option<&str>, fields: &[Header<'_>]) -> Result<Name, Stop> {
    let mut hosts = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("host"));
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return Err(Stop::No(NoName::Malformed));
    }
    let target = target.unwrap_or_default();
    let of_target = if method == Some("CONNECT") {
        Some(target)
    } else {
        let (_, behind_scheme) = target.split_once("://").unzip();
        behind_scheme
            .filter(|_| !target.starts_with('/'))
            .and_then(|rest| rest.split(['/', '?', '#']).next())
    };
    let of_target = of_target.map(|authority| Name::of_authority(authority.as_bytes()));
    let of_host = host.map(|host| Name::of_authority(host.value.trim_ascii()));
    match (of_target, of_host) {
        (Some(target), Some(host)) if target != host => Err(Stop::No(NoName::Malformed)),
        (Some(name), _) | (None, Some(name)) => Ok(name?),
        (None, None) => Err(Stop::No(NoName::Unnamed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_read(request: &str, expected: Result<&str, Stop>) {
        let read = read(request.as_bytes(), false);
        let read = read.as_ref().map(Name::as_str).map_err(|stop| *stop);
        assert_eq!(read, expected, "{request:?}");
    }

    #[test]
    fn the_host_names_the_server() {
        assert_read(
            "GET / HTTP/1.1\r\nhOst:  Example.com:8080 \r\n\r\n",
            Ok("example.com"),
        );
        assert_read("GET /?a=http://b/ HTTP/1.1\r\nHost: c\r\n\r\n", Ok("c"));
        assert_read(
            "OPTIONS * HTTP/1.1\r\nX: y\r\nHost: a.b\r\n\r\nbody",
            Ok("a.b"),
        );
        assert_read("\r\nPOST / HTTP/1.0\nHost: a.b\n\n", Ok("a.b"));
        assert_read("GET / HTTP/1.0\r\n\r\n", Err(Stop::No(NoName::Unnamed)));
        assert_read(
            "GET / HTTP/1.1\r\nHost:\r\n\r\n",
            Err(Stop::No(NoName::Unnamed)),
        );
        let two = "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n";
        assert_read(two, Err(Stop::No(NoName::Malformed)));
        let address = "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n";
        assert_read(address, Err(Stop::No(NoName::Address)));
        let escape = "GET / HTTP/1.1\r\nHost: a\u{1b}[2Jb\r\n\r\n";
        assert!(read(escape.as_bytes(), false).is_err());
    }

    #[test]
    fn a_target_with_a_name_comes_first() {
        for target in [
            "GET http://A.b:80/c",
            "GET https://a.b?c",
            "CONNECT a.b:443",
        ] {
            let read = |host: &str, expected| {
                assert_read(&format!("{target} HTTP/1.1\r\n{host}\r\n"), expected);
            };
            read("", Ok("a.b"));
            read("Host: a.B.\r\n", Ok("a.b"));
            // With two of them, the server would choose.
            read("Host: d\r\n", Err(Stop::No(NoName::Malformed)));
            read("Host:\r\n", Err(Stop::No(NoName::Malformed)));
        }
        let user = "GET http://user@a.b/ HTTP/1.1\r\n\r\n";
        assert_read(user, Err(Stop::No(NoName::Refused)));
    }

    #[test]
    fn what_is_not_http_is_foreign() {
        for text in ["SSH-2.0-OpenSSH_9.2\r\n", "EHLO a.b\r\n", "\0\0", "\u{7f}"] {
            assert_read(text, Err(Stop::No(NoName::Foreign)));
        }
        assert_read(
            "GET / HTTP/1.1\r\nno field\r\n",
            Err(Stop::No(NoName::Malformed)),
        );
        assert_read("GET / HTTP/9.1\r\n", Err(Stop::No(NoName::Malformed)));
        assert_read("GET / HTTP/1.1\r\nHost: a.b\r\n", Err(Stop::More));
        assert_read("GE", Err(Stop::More));
    }

    #[test]
    fn what_a_lenient_server_takes_is_not_foreign() {
        for text in [
            "GET  / HTTP/1.1\r\nHost: a.b\r\n\r\n",
            "GET http://a.b/\r\n",
            "\r\r\nGET / HTTP/1.1\r\nHost: a.b\r\n\r\n",
            "GET\t/ HTTP/1.1\nHost: a.b\n\n",
        ] {
            assert_read(text, Err(Stop::No(NoName::Malformed)));
            let line = text.len() - text.trim_ascii_start().len() + 4;
            assert_read(&text[..line], Err(Stop::More));
        }
        assert_read(" \t", Err(Stop::More));
    }

    #[test]
    fn a_long_cookie_does_not_hide_the_name() {
        let cookie = "x".repeat(5000);
        let text = format!("GET / HTTP/1.1\r\nHost: a.b\r\nCookie: {cookie}\r\n\r\n");
        let first = &text.as_bytes()[..4096];
        assert_eq!(read(first, false), Err(Stop::More));
        assert_eq!(read(first, true).unwrap().as_str(), "a.b");
        let text = format!("GET /{cookie} HTTP/1.1\r\nHost: a.b\r\n\r\n");
        let first = &text.as_bytes()[..4096];
        assert_eq!(read(first, true), Err(Stop::No(NoName::TooLong)));
        let text = format!("GET / HTTP/1.1\r\nCookie: {cookie}\r\nHost: a.b\r\n\r\n");
        let first = &text.as_bytes()[..4096];
        assert!(read(first, true).is_err());
    }
}
