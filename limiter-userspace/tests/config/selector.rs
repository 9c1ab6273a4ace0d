//! Connections by server name, and Traffic Server's section `selector`.

use limiter_common::{limit::Cost, reason::Action};
use limiter_policy::{
    config::Config,
    policy::{Queue, Rate, UntilKnown},
};

use super::harness::{check_positions as check, load};

/// The example of Traffic Server's documentation, unchanged.
const EXAMPLE: &str = "\
selector:
  - sni: test1.example.com
    limit: 1000
    queue:
      size: 1000
      max-age: 30
    metrics:
      tag: example.com
      prefix: ddos
    ip-rep: main
    exclude: internal
  - sni: test2.example.com
    aliases: [test3.example.com, test4.example.com]
    limit: 100
ip-rep:
  - name: main
    buckets: 10
    size: 15
    percentage: 90
    max-age: 300
    perma-block:
      limit: 100
      threshold: 1
      max-age: 1800
lists:
  - name: internal
    cidr:
      - 10.0.0.0/8
      - 192.168.0.0/16
";

fn read(text: &str) -> Config {
    load(&[("limiter.yaml", text.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[test]
fn the_documentation_s_example_is_two_limits() {
    let policy = read(EXAMPLE).policy;
    let [first, second] = &policy.limits[..] else {
        panic!("{:?}", policy.limits);
    };
    assert_eq!(first.name, "test1.example.com");
    assert_eq!(first.cost, Cost::Connections);
    assert_eq!(first.default, Some(Rate::of_connections(1000)));
    let queue = Queue {
        size: 1000,
        max_age_ns: 30_000_000_000,
    };
    assert_eq!(first.queue, Some(queue));
    let metrics = first.metrics.as_ref().unwrap();
    assert_eq!((&*metrics.prefix, &*metrics.tag), ("ddos", "example.com"));
    assert_eq!(first.ip_rep.as_deref(), Some("main"));
    assert_eq!(first.exclude, ["internal"]);
    assert_eq!(
        first.matching.to_string(),
        "tcp dport 443 server test1.example.com"
    );
    assert_eq!(
        second.matching.to_string(),
        "tcp dport 443 server test2.example.com,test3.example.com,test4.example.com"
    );
    assert!(second.queue.is_none() && second.metrics.is_none());
    assert_eq!(
        (policy.until_known, policy.malformed),
        (UntilKnown::Pass, Action::Drop)
    );
}

#[test]
fn the_fallback_counts_what_no_other_does() {
    for fallback in ["'*'", "default"] {
        let policy = read(&format!(
            "selector: [{{sni: a.example, rate: 0}}, {{sni: {fallback}, limit: 9}}]\n\
             names: {{tls: {{until-known: hold}}}}\n"
        ))
        .policy;
        let limit = |name: &str| {
            policy
                .limits
                .iter()
                .find(|limit| limit.name == name)
                .unwrap()
        };
        let other = limit(fallback.trim_matches('\''));
        assert_eq!(
            other.matching.to_string(),
            "tcp dport 443 server * otherwise"
        );
        // A rule without a limit sets the highest possible one.
        let most = Some(Rate::of_connections(1_000_000));
        assert_eq!(limit("a.example").default, most);
        assert_eq!(policy.until_known, UntilKnown::Hold);
    }
    let alone = read("selector: [{sni: '*', limit: 9}]\n").policy;
    assert_eq!(
        alone.limits[0].matching.to_string(),
        "tcp dport 443 server *"
    );
}

/// More names than the number of selectors allowed, each with its own bound.
#[test]
fn one_limit_for_many_names() {
    let names: Vec<_> = (1..=20).map(|one| format!("a{one}")).collect();
    let policy = read(&format!(
        "server-names: [{}]\n\
         limits: {{Each: {{id: server-name, cost: connections, limit: 5}}}}\n\
         overrides: {{'Each:a20': {{limit: 9}}}}\n",
        names.join(", ")
    ))
    .policy;
    let [limit] = &policy.limits[..] else {
        panic!("{:?}", policy.limits);
    };
    let [one] = &limit.overrides[..] else {
        panic!("{:?}", limit.overrides);
    };
    assert_eq!(one.id.to_string(), "a20");
    assert_eq!(one.rate, Rate::of_connections(9));
}

#[test]
fn what_is_wrong_in_a_selector() {
    let wrong = |text: &str, expected: &[&str]| check(&format!("selector:\n{text}"), expected);
    wrong(
        "- {limit: 5}\n",
        &["2:3: needs 'sni', the name that clients ask for, or '*' for all others"],
    );
    wrong(
        "- {sni: a, aliases: [b, A]}\n",
        &["2:25: duplicate name 'a', first at 2:9"],
    );
    wrong(
        "- {sni: a}\n- {sni: b, aliases: a}\n",
        &["3:21: duplicate name 'a', first at 2:9"],
    );
    wrong(
        "- {sni: a}\n- {sni: '*', aliases: b}\n",
        &["3:14: 'aliases' has no effect: this selector is for all other names"],
    );
    wrong(
        "- {sni: a, rate: 5}\n",
        &[
            "2:12: 'rate' is not for connections by name: give a second limit, of cost handshakes, to their port",
        ],
    );
    wrong(
        "- {sni: a, error: 429}\n",
        &["2:12: 'error' has no meaning here: it is an HTTP status, and packets get no answer"],
    );
    let nine: Vec<_> = (1..=9).map(|one| format!("- {{sni: a{one}}}\n")).collect();
    wrong(
        &nine.concat(),
        &["10:9: a9 is one too many: at most 8 limits have cost connections"],
    );
    wrong(
        "- {sni: a}\nlimits: {a: {id: total, cost: packets, rate: 9/s}}\n",
        &["2:9: there is a limit 'a' already: each name has one"],
    );
}

#[test]
fn what_limits_on_connections_by_name_do_not_have() {
    let limit =
        |rest: &str| format!("limits:\n  A: {{id: total, cost: connections, limit: 5, {rest}}}\n");
    check(
        &limit("match: {server-name: a}, group: g"),
        &[
            "2:72: 'group' is not for limits by server name: their connections begin to count later than others",
            "2:72: A is alone in the group 'g': give it to another limit, too, or leave it out",
        ],
    );
    check(
        &(limit("match: {server-name: a}")
            + "  B: {id: total, cost: connections, limit: 5, otherwise: true}\n"),
        &[
            "3:3: B counts what A does not, by server name: give it `match: {server-name: '*'}`, too",
        ],
    );
    check(
        "names: {tls: {until-known: wait}}\n",
        &["1:28: unknown until-known 'wait', must be one of pass, hold"],
    );
}
