//! The sections other than limits.

use std::path::Path;

use limiter_common::table::WhenFull;
use limiter_policy::config::{AttachMode, ListenAddress, Offenders, Store};

use super::harness::{LIMIT, check, load};

#[test]
fn what_is_left_out_has_defaults() {
    let config = load(&[("limiter.yaml", LIMIT.as_bytes())]).unwrap();
    assert_eq!(config.interfaces, Vec::new());
    assert_eq!(config.mode, AttachMode::Auto);
    assert_eq!(config.buckets.capacity, 1_048_576);
    assert_eq!(config.buckets.store, Store::Table);
    assert_eq!(config.buckets.when_full, WhenFull::Evict);
    assert_eq!(config.offenders, Offenders { capacity: 65_536 });
    assert_eq!(config.state, None);
    assert_eq!(config.metrics.listen, "127.0.0.1:9470".parse().ok());
}

#[test]
fn prefixes_of_translators() {
    let check =
        |settings: &str, expected: &[&str]| check(&format!("{settings}\n{LIMIT}"), expected);
    check(
        "nat64: ['64:ff9b:1:7::/96', '2001:db8::/32', '2001:db8:1:2::/64']",
        &[],
    );
    let expected = "expected a translator's prefix: IPv6, of 32, 40, 48, 56, 64 or 96 bits, of which \
                    bits 64 to 71 are 0 (RFC 6052)";
    check(
        "nat64: ['2001:db8::/64', 192.0.2.0/24, '2001:db8::/63', '2001:db8:0:0:100::/96', \
         '2001:db8::/64', x]",
        &[
            &format!("1:26: invalid nat64 '192.0.2.0/24', {expected}"),
            &format!("1:40: invalid nat64 '2001:db8::/63', {expected}"),
            &format!("1:57: invalid nat64 '2001:db8:0:0:100::/96', {expected}"),
            "1:82: duplicate prefix '2001:db8::/64', first at 1:9",
            "1:99: invalid nat64 'x', expected an address or prefix, such as '192.0.2.0/24' or \
             '2001:db8::1'",
        ],
    );
}

/// The error about an interface's name or pattern.
const NAME: &str =
    "expected 1 to 127 bytes without '/', ':' and white space, such as 'eth0' or 'vnet*'";

#[test]
fn settings() {
    let check =
        |settings: &str, expected: &[&str]| check(&format!("{settings}\n{LIMIT}"), expected);
    check("mode: generic", &[]);
    check(
        "mode: natve",
        &["1:7: unknown mode 'natve', did you mean 'native'?"],
    );
    check(
        "mode: skb",
        &["1:7: unknown mode 'skb', must be one of auto, native, generic"],
    );
    check(
        "mode:",
        &["1:5: expected auto, native or generic, found nothing"],
    );
    check(
        "mode: [auto]",
        &["1:7: expected auto, native or generic, found a list"],
    );
    check("malformed: drop", &[]);
    check("malformed: pass", &[]);
    check(
        "malformed: dorp",
        &["1:12: unknown action 'dorp', did you mean 'drop'?"],
    );
    check(
        "malformed: ~",
        &["1:12: expected drop or pass, found nothing"],
    );
    check("own-connections: exempt", &[]);
    check("own-connections: limit", &[]);
    check(
        "own-connections: exemp",
        &["1:18: unknown value of own-connections 'exemp', did you mean 'exempt'?"],
    );
    check(
        "own-connections: no",
        &["1:18: unknown value of own-connections 'no', must be one of exempt, limit"],
    );
    check("connections: own", &[]);
    check("connections: tracked", &[]);
    check(
        "connections: track",
        &["1:14: unknown value of connections 'track', did you mean 'tracked'?"],
    );
    check(
        "connections: {limit: 3}",
        &["1:14: expected own or tracked, found a mapping"],
    );
    check("metrics: {listen: off}", &[]);
    check("metrics: {listen: 'off'}", &[]);
    check("metrics: {}", &[]);
    let wanted = "an address and port, such as '127.0.0.1:9470', or 'off'";
    check(
        "metrics: {listen: no}",
        &[&format!("1:19: expected {wanted}, found the boolean 'no'")],
    );
    check(
        "metrics: {listen: localhost:9470}",
        &[&format!(
            "1:19: invalid listen 'localhost:9470', expected {wanted}"
        )],
    );
    check(
        "metrics: {listen: 9470}",
        &["1:19: invalid listen '9470', did you mean '127.0.0.1:9470'?"],
    );
    check(
        "metrics: {listen: ':9470'}",
        &["1:19: invalid listen ':9470', did you mean '127.0.0.1:9470'?"],
    );
    check(
        "metrics: off",
        &["1:10: expected a map with 'listen', found the boolean 'off'"],
    );
    check(
        "interfaces: []",
        &["1:13: no interfaces: name at least one"],
    );
    check(
        "interfaces: {eth0: 1}",
        &["1:13: expected an interface's name, found a mapping"],
    );
    check(
        "interfaces: [eth0, a/b, eth0, '', {}, vnet*, 'v:*', 'vnet[0-9', vnet*]",
        &[
            &format!("1:20: invalid interface 'a/b', {NAME}"),
            "1:25: duplicate interface 'eth0', first at 1:14",
            &format!("1:31: invalid interface '', {NAME}"),
            "1:35: expected an interface's name, found an empty mapping",
            &format!("1:46: invalid interface 'v:*', {NAME}"),
            "1:53: invalid interface 'vnet[0-9', expected no '[', ']', '{', '}' or '\\': of a shell's \
             patterns only '*' and '?' are known, such as 'vnet*'",
            "1:65: duplicate interface 'vnet*', first at 1:39",
        ],
    );
    let longest = "é".repeat(63);
    check(&format!("interfaces: {longest}x"), &[]);
    let error = format!("1:13: invalid interface '{longest}xy', {NAME}");
    check(&format!("interfaces: {longest}xy"), &[&error]);
}

#[test]
fn one_interface_needs_no_brackets() {
    let yaml = format!("interfaces: eth0\n{LIMIT}");
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
    assert_eq!(config.interfaces, ["eth0".parse().unwrap()]);
}

#[test]
fn the_mode_of_a_limit_is_not_that_of_interfaces() {
    let why = "'mode: observe' and 'mode: enforce' belong to a limit, and this mode, auto, native \
               or generic, to interfaces";
    for mode in ["dry-run", "observe"] {
        check(
            &format!("mode: {mode}\n{LIMIT}"),
            &[&format!("1:7: unknown mode '{mode}': {why}")],
        );
    }
}

#[test]
fn metrics_can_be_turned_off() {
    let yaml = format!("metrics: {{listen: off}}\n{LIMIT}");
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
    assert_eq!(config.metrics.listen, None);
}

#[test]
fn metrics_have_names() {
    let yaml = format!("metrics: {{hosts: Node.Example.org}}\n{LIMIT}");
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
    assert_eq!(config.metrics.hosts, ["node.example.org"]);
    assert!(config.metrics.listen.is_some());
    check(
        &format!("metrics: {{hosts: [Node.example, a b]}}\n{LIMIT}"),
        &["1:33: invalid host 'a b', expected a name, such as 'limiter.example.org'"],
    );
}

#[test]
fn the_state_file_is_beside_the_configuration() {
    let state = |name: &str| {
        let yaml = format!("state: {name}\n{LIMIT}");
        let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
        config.state.unwrap()
    };
    assert_eq!(
        state("/var/lib/limiter/state"),
        Path::new("/var/lib/limiter/state")
    );
    let beside = state("state");
    assert!(
        beside.is_absolute() && beside.ends_with("state"),
        "{beside:?}"
    );

    let check =
        |settings: &str, expected: &[&str]| check(&format!("{settings}\n{LIMIT}"), expected);
    for name in ["''", "/", "/var/lib/", "..", "a/.."] {
        let error = format!(
            "1:8: invalid state '{}', expected a file's name",
            name.trim_matches('\'')
        );
        check(&format!("state: {name}"), &[&error]);
    }
    check("state:", &["1:6: expected a file's name, found nothing"]);
    check("state: [a]", &["1:8: expected a file's name, found a list"]);
}

#[test]
fn buckets() {
    let check =
        |settings: &str, expected: &[&str]| check(&format!("{settings}\n{LIMIT}"), expected);
    check("buckets: {capacity: 1024}", &[]);
    check(
        "buckets: {capacity: 1023}",
        &["1:21: invalid capacity '1023', must be from 1024 to 67108864"],
    );
    check(
        "buckets: {capacity: 67108865}",
        &["1:21: invalid capacity '67108865', must be from 1024 to 67108864"],
    );
    check("buckets: {store: table, when-full: deny-new}", &[]);
    check("buckets: {when-full: pass-new}", &[]);
    check("buckets: {store: hash}", &[]);
    check("buckets: {scope: host}", &[]);
    check("buckets: {scope: interface}", &[]);
    check(
        "buckets: {scope: port}",
        &["1:18: unknown scope 'port', must be one of host, interface"],
    );
    check(
        "buckets: {store: lru}",
        &["1:18: unknown store 'lru', must be one of table, hash"],
    );
    check(
        "buckets: {when-full: deny}",
        &["1:22: unknown when-full 'deny', must be one of evict, deny-new, pass-new"],
    );
    check(
        "buckets: {store: hash, when-full: evict}",
        &[
            "1:35: 'when-full' is only for 'store: table': the kernel's hash map always evicts the \
             least recently used entry",
        ],
    );
    check(
        "buckets: {capacity: 0, size: 1}",
        &[
            "1:21: invalid capacity '0', must be from 1024 to 67108864",
            "1:24: unknown field 'size', must be one of store, capacity, when-full, scope",
        ],
    );
    check(
        "buckets: 5",
        &["1:10: expected a map with store, capacity, when-full, scope, found the number '5'"],
    );
}

#[test]
fn offenders() {
    let check =
        |settings: &str, expected: &[&str]| check(&format!("{settings}\n{LIMIT}"), expected);
    check("offenders: {}", &[]);
    check("offenders: {capacity: 1024}", &[]);
    check("offenders: {capacity: 1048576}", &[]);
    for wrong in ["1", "1023"] {
        check(
            &format!("offenders: {{capacity: {wrong}}}"),
            &[&format!(
                "1:23: invalid capacity '{wrong}', must be 0 (none are recorded) or from 1024 to \
                 1048576"
            )],
        );
    }
    check(
        "offenders: {capacity: 1048577}",
        &["1:23: invalid capacity '1048577', must be from 0 to 1048576"],
    );
    check(
        "offenders: {capactiy: 2048}",
        &["1:13: unknown field 'capactiy', did you mean 'capacity'?"],
    );
    check(
        "offenders: off",
        &["1:12: expected a map with 'capacity', found the boolean 'off'"],
    );
    check(
        "ofenders: {}",
        &["1:1: unknown field 'ofenders', did you mean 'offenders'?"],
    );
    let yaml = format!("offenders: {{capacity: 0}}\n{LIMIT}");
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
    assert_eq!(config.offenders, Offenders::OFF);
}

#[test]
fn where_the_page_is() {
    let page = |yaml: &str| {
        let yaml = format!("{yaml}\n{LIMIT}");
        load(&[("limiter.yaml", yaml.as_bytes())]).unwrap().page
    };
    let address = |text: &str| text.parse().map(ListenAddress::Address).ok();
    let usual = address("127.0.0.1:9471");
    for off in ["", "page: off", "page: {listen: off}"] {
        assert_eq!(page(off).listen, None, "{off}");
    }
    for on in ["page: on", "page: {}", "page: {listen: 127.0.0.1:9471}"] {
        assert_eq!(page(on).listen, usual, "{on}");
    }
    let named = page("page: {listen: '[::1]:80', hosts: [Limiter.example.org, other]}");
    assert_eq!(named.listen, address("[::1]:80"));
    assert_eq!(named.hosts, ["limiter.example.org", "other"]);
    let open = page("page: {listen: 192.0.2.1:80, beyond-loopback: true}");
    assert_eq!(open.listen, address("192.0.2.1:80"));
    let socket = page("page: {listen: /run/limiter/page.sock}");
    assert_eq!(
        socket.listen,
        Some(ListenAddress::Socket("/run/limiter/page.sock".into()))
    );

    let check =
        |settings: &str, expected: &[&str]| check(&format!("{settings}\n{LIMIT}"), expected);
    let open = "the page would be open to whoever reaches 0.0.0.0:9471, without a password: listen \
                on 127.0.0.1 and look through `ssh -L`, or say 'beyond-loopback: true' as well";
    check(
        "page: {listen: '0.0.0.0:9471'}",
        &[&format!("1:16: {open}")],
    );
    check(
        "page: {listen: '0.0.0.0:9471', beyond-loopback: false}",
        &[&format!("1:16: {open}")],
    );
    check(
        "page: {listen: page.sock}",
        &[
            "1:16: invalid listen 'page.sock', expected an address and port, such as \
             '127.0.0.1:9471', a socket's whole path, such as '/run/limiter/page.sock', or 'off'",
        ],
    );
    check(
        "page: {listen: /run/}",
        &["1:16: invalid listen '/run/', expected a socket's path, of at most 96 bytes"],
    );
    let expected = "expected 'on', 'off' or a map with 'listen'";
    check(
        "page: 9471",
        &[&format!("1:7: {expected}, found the number '9471'")],
    );
    check(
        "page: yes",
        &[&format!("1:7: {expected}, found the boolean 'yes'")],
    );
    check(
        "page: {listen: 9471, hosts: ['a b', '*'], beyond-loopback: 1, token: x}",
        &[
            "1:16: invalid listen '9471', did you mean '127.0.0.1:9471'?",
            "1:30: invalid host 'a b', expected a name, such as 'limiter.example.org'",
            "1:37: invalid host '*', expected a name, such as 'limiter.example.org'",
            "1:60: unknown beyond-loopback '1', must be one of true, false",
            "1:63: unknown field 'token', must be one of listen, hosts, beyond-loopback",
        ],
    );
}

#[test]
fn who_may_ask() {
    let group = |yaml: &str| {
        let yaml = format!("{yaml}\n{LIMIT}");
        let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
        config.control.group
    };
    assert_eq!(group("control: {group: adm}").as_deref(), Some("adm"));
    assert_eq!(group("control: {group: 27}").as_deref(), Some("27"));
    assert_eq!(group("control: {}"), None);
    check(
        &format!("control: {{group: 'a:b', user: x}}\n{LIMIT}"),
        &[
            "1:18: invalid group 'a:b', expected a group's name or number",
            "1:25: unknown field 'user', must be one of group",
        ],
    );
}
