//! The section `subscribers`, and the limits that need it.

use super::harness::{LIMIT, check, load};

#[test]
fn subscribers() {
    let nested = "subscribers:
  1: 10.0.0.0/8
  2: [10.1.0.0/16, 10.1.2.3, 10.1.2.4/32, '2001:db8::/32', 0.0.0.0/0]
  18446744073709551615: {prefixes: 2001:db8:1::/48}
";
    check(&format!("{LIMIT}{nested}"), &[]);
    check(
        &format!(
            "{LIMIT}subscribers:
  0: 10.0.0.0/8
  01: 10.1.0.0/16
  Smith: 10.2.0.0/16
  18446744073709551616: 10.3.0.0/16
  1: 10.4.0.1/16
  2: [10.5.0.0/16, 10.5.0.0/16, 10.0.0.0/8]
  3: []
  4:
  5: {{comment: x}}
  6: {{prefix: 10.6.0.0/16, comment: ~}}
  7: [10.7.0.0/33, 010.7.0.0, '::ffff:10.7.0.0/112', [], 7]
  8:
    - 2001:db8::
  11: 10.8.0.0/16
  9: 2001:0db8:9::0
  10: 2001:db8:9::/128
"
        ),
        &[
            "3:3: invalid subscriber '0', must be a number from 1 to 18446744073709551615, in digits",
            "4:3: invalid subscriber '01', must be a number from 1 to 18446744073709551615, in digits",
            "5:3: invalid subscriber 'Smith', must be a number from 1 to 18446744073709551615, in \
             digits",
            "6:3: invalid subscriber '18446744073709551616', must be a number from 1 to \
             18446744073709551615, in digits",
            "7:6: invalid prefix '10.4.0.1/16', must have no host bits set, did you mean \
             '10.4.0.0/16'?",
            "8:20: duplicate prefix '10.5.0.0/16', first at 8:7",
            "8:33: duplicate prefix '10.0.0.0/8', first at 3:6",
            "9:6: no prefixes: name at least one",
            "10:4: expected an address or prefix, such as '192.0.2.0/24' or '2001:db8::1', found \
             nothing",
            "11:6: missing field 'prefixes'",
            "12:7: unknown field 'prefix', did you mean 'prefixes'?",
            "12:37: expected a comment, found nothing",
            "13:7: invalid prefix '10.7.0.0/33', the prefix length of an IPv4 address is at most 32",
            "13:20: invalid prefix '010.7.0.0', must have no leading zeros, which some programs \
             read as octal",
            "13:31: invalid prefix '::ffff:10.7.0.0/112', which stands for an IPv4 address, did you \
             mean '10.7.0.0/16'?",
            "13:54: expected an address or prefix, such as '192.0.2.0/24' or '2001:db8::1', found a \
             list",
            "13:58: invalid prefix '7', expected an address or prefix, such as '192.0.2.0/24' or \
             '2001:db8::1'",
            "15:7: expected an address or prefix, such as '192.0.2.0/24' or '2001:db8::1', found a \
             mapping: put an address that ends in a colon in quotes: '2001:db8::'",
            "18:7: duplicate prefix '2001:db8:9::/128', first at 17:6",
        ],
    );
}

#[test]
fn a_subscriber_twice() {
    for again in ["1", "0x1", "+1"] {
        check(
            &format!("{LIMIT}subscribers:\n  1: 10.0.0.1\n  2: x\n  {again}: 10.0.0.2\n"),
            &[&format!("5:3: duplicate '{again}'")],
        );
    }
    check(
        &format!("{LIMIT}subscribers:\n  '1': 10.0.0.1\n  '1': 10.0.0.2\n"),
        &["4:3: duplicate '1', first at 3:3"],
    );
    check(
        &format!("{LIMIT}subscribers:\n  '1': 10.0.0.1\n  1: 10.0.0.2\n"),
        &["4:3: duplicate '1', first at 3:3"],
    );
}

#[test]
fn no_subscribers() {
    check(
        &format!("{LIMIT}subscribers: {{}}"),
        &["2:14: no subscribers: name at least one, or leave the section out"],
    );
    check(
        &format!("{LIMIT}subscribers: [1]"),
        &["2:14: expected a map of subscribers' numbers to their prefixes, found a list"],
    );
    let why = "needs a section 'subscribers' with each subscriber's number and prefixes";
    check(
        "limits:
  PacketsPerSubscriber: {burst: 1, count: 1, period: 1s}
  Own: {id: regId, cost: packets, burst: 1, count: 1, period: 1s}
overrides:
  BytesPerSubscriber:7: {burst: 2000, count: 1, period: 1s}
  BytesPerSubscriber:8: {burst: 2000, count: 1, period: 1s}
  BytesPerSubscriber:x: {burst: 2000, count: 1, period: 1s}
",
        &[
            &format!("2:3: PacketsPerSubscriber {why}"),
            &format!("3:3: Own {why}"),
            &format!("5:3: BytesPerSubscriber {why}"),
            "7:3: invalid id 'x', expected a subscriber's number, such as '1001'",
        ],
    );
    // A misspelt section is not also reported as missing.
    check(
        "subscriber: {1: 10.0.0.1}\nlimits:\n  PacketsPerSubscriber: {burst: 1, count: 1, \
         period: 1s}\n",
        &["1:1: unknown field 'subscriber', did you mean 'subscribers'?"],
    );
}

#[test]
fn overrides_of_subscribers() {
    check(
        "subscribers: {1001: 10.0.0.1}
overrides:
  - PacketsPerSubscriber: {burst: 1, count: 1, period: 1s, ids: [1001, 1002, 01001, 10.0.0.1, x]}
  - PacketsPerSubscriber: {burst: 1, count: 1, period: 1s, ids: ['1001']}
",
        &[
            "3:72: invalid id '1002', no subscriber has this number",
            "3:78: invalid id '01001', expected a subscriber's number, such as '1001'",
            "3:85: invalid id '10.0.0.1', expected a subscriber's number, such as '1001'",
            "3:95: invalid id 'x', expected a subscriber's number, such as '1001'",
            "4:66: duplicate id '1001' of PacketsPerSubscriber, first at 3:66",
        ],
    );
}

#[test]
fn subscribers_in_a_file_of_their_own() {
    let yaml = b"subscribers: s.yml\noverrides:\n  PacketsPerSubscriber:7: {burst: 1, count: 1, \
                 period: 1s}\n";
    let config = load(&[("limiter.yaml", yaml), ("s.yml", b"7: 10.0.0.1\n")]).unwrap();
    assert_eq!(config.policy.subscribers.len(), 1);
    // An unreadable file causes one error, not two.
    assert_eq!(
        load(&[("limiter.yaml", yaml), ("s.yml", b"7: [\n")]),
        Err(vec![
            "s.yml:1:4: invalid YAML: unclosed bracket '['".to_owned()
        ]),
    );
}
