//! Serves pages and metrics only to requests that use one of their names, against DNS rebinding: a site that
//! points its own name at this host makes its visitors' browsers send requests here, and must not read the
//! responses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::{
    HeaderMap, Uri,
    header::{HOST, HeaderValue, ORIGIN},
    http::uri::Authority,
};

/// The names of a page.
pub(crate) struct Visitors {
    /// `None`: it listens on a Unix socket.
    listen: Option<IpAddr>,
    hosts: Vec<String>,
}

impl Visitors {
    pub(crate) fn new(listen: Option<IpAddr>, hosts: Vec<String>) -> Self {
        Self { listen, hosts }
    }

    /// Returns whether a request may be answered. Its target must not name a host in place of the header.
    pub(crate) fn is_own_request(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        uri.authority().is_none() && self.has_own_host(headers)
    }

    fn has_own_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        let knows = |value: &HeaderValue, prefixes: &[&str]| {
            let text = value.to_str().unwrap_or_default();
            let mut names = prefixes
                .iter()
                .filter_map(|prefix| text.strip_prefix(prefix));
            names.any(|name| self.is_ours(name))
        };
        let mut origins = headers.get_all(ORIGIN).iter();
        knows(host, &[""]) && origins.all(|origin| knows(origin, &["http://", "https://"]))
    }

    /// Returns whether a host, perhaps with a port, is one of the names. The port may differ, as behind `ssh
    /// -L`.
    fn is_ours(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        let name = authority.host();
        if authority.as_str().contains('@') {
            return false;
        }
        let bare = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(name).parse::<IpAddr>() {
            // If it listens on all addresses, any address is right: a rebound name is never an address.
            let all = [
                IpAddr::from(Ipv4Addr::UNSPECIFIED),
                IpAddr::from(Ipv6Addr::UNSPECIFIED),
            ];
            let is_named = |listen: IpAddr| address == listen || all.contains(&listen);
            return address.is_loopback() || self.listen.is_some_and(is_named);
        }
        let name = name.to_ascii_lowercase();
        name == "localhost" || self.hosts.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;

    fn has_own_host(listen: &str, fields: &[(HeaderName, &'static str)]) -> bool {
        let hosts = vec!["limiter.example.org".to_owned()];
        let visitors = Visitors::new(listen.parse().ok(), hosts);
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        visitors.has_own_host(&headers)
    }

    #[test]
    fn the_page_has_names() {
        let check = |host: &'static str, expected| {
            assert_eq!(
                has_own_host("127.0.0.1", &[(HOST, host)]),
                expected,
                "{host}"
            );
        };
        for host in [
            "127.0.0.1:9471",
            "127.0.0.1",
            "localhost:8080",
            "LOCALHOST",
            "[::1]:9471",
            "limiter.example.org",
            "Limiter.example.org:443",
        ] {
            check(host, true);
        }
        for host in [
            "",
            "attacker.example",
            "attacker.example:9471",
            "127.0.0.1.attacker.example",
            "localhost.attacker.example",
            "localhost@attacker.example",
            "attacker.example@localhost",
            "192.0.2.1:9471",
            "example.org",
            "[::2]",
            "127.0.0.1/x",
        ] {
            check(host, false);
        }
        assert!(has_own_host("192.0.2.1", &[(HOST, "192.0.2.1:9471")]));
        assert!(has_own_host("0.0.0.0", &[(HOST, "192.0.2.1:9471")]));
        assert!(!has_own_host("0.0.0.0", &[(HOST, "attacker.example")]));
    }

    #[test]
    fn the_line_of_a_request_names_no_host() {
        let visitors = Visitors::new(None, Vec::new());
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
        for (uri, expected) in [("/metrics", true), ("http://localhost/metrics", false)] {
            assert_eq!(
                visitors.is_own_request(&uri.parse().unwrap(), &headers),
                expected
            );
        }
    }

    #[test]
    fn one_host_and_no_other_origin() {
        assert!(!has_own_host("127.0.0.1", &[]));
        let both = [(HOST, "localhost"), (HOST, "localhost")];
        assert!(!has_own_host("127.0.0.1", &both));
        for (origin, expected) in [
            ("http://localhost:9471", true),
            ("https://limiter.example.org", true),
            ("http://attacker.example", false),
            ("null", false),
            ("localhost", false),
        ] {
            let fields = [(HOST, "localhost"), (ORIGIN, origin)];
            assert_eq!(has_own_host("127.0.0.1", &fields), expected, "{origin}");
        }
    }
}
