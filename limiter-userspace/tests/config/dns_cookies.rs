//! Which DNS cookies prove sources.

use std::path::Path;

use limiter_policy::config::Config;

use crate::harness::{LIMIT, load};

const SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";

/// Loads a section; a file `secret` lies in the same directory.
fn load_with(section: &str, secret: &str) -> Result<Config, Vec<String>> {
    let configuration = format!("{LIMIT}dns-cookies: {section}\n");
    load(&[
        ("limiter.yaml", configuration.as_bytes()),
        ("secret", secret.as_bytes()),
    ])
}

#[test]
fn sections() {
    for (section, port) in [
        ("{secret-file: secret}", 53),
        ("{secret-file: secret, port: 5353}", 5353),
    ] {
        let config = load_with(section, SECRET).unwrap();
        let cookies = config.policy.dns_cookies.unwrap();
        assert_eq!(cookies.port, port);
        assert_eq!(cookies.secret_file.file_name(), Some("secret".as_ref()));
        assert!(cookies.secret_file.is_absolute());
        assert_eq!(config.secrets.unwrap().secrets.len(), 1);
        // The files of secrets are not watched, because new secrets do not change the
        // configuration.
        assert_eq!(config.files, ["limiter.yaml", "limiter.d"].map(Path::new));
        let shown = format!("{cookies:?}");
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

#[track_caller]
#[expect(clippy::unwrap_used, reason = "the tests' sections are wrong")]
fn check(section: &str, secret: &str, expected: &[&str]) {
    let errors = load_with(section, secret).unwrap_err();
    let errors: Vec<_> = errors
        .iter()
        .map(|error| error.strip_prefix("limiter.yaml:2:").unwrap())
        .collect();
    assert_eq!(errors, expected);
    assert!(!errors.iter().any(|error| error.contains(&SECRET[..8])));
}

#[test]
fn wrong_sections() {
    check(
        "secret",
        SECRET,
        &["14: expected a map with 'secret-file' and 'port', found the text 'secret'"],
    );
    check(
        "{port: 53}",
        SECRET,
        &["14: needs 'secret-file', the file with the DNS server's secrets"],
    );
    check(
        "{secret-fil: secret}",
        SECRET,
        &["15: unknown field 'secret-fil', did you mean 'secret-file'?"],
    );
    for port in ["0", "65536"] {
        check(
            &format!("{{port: {port}, secret-file: secret}}"),
            SECRET,
            &[&format!(
                "21: invalid port '{port}', must be from 1 to 65535"
            )],
        );
    }
    check(
        "{secret-file: none}",
        SECRET,
        &["28: the file 'none' cannot be read: No such file or directory (os error 2)"],
    );
    check(
        "{secret-file: .}",
        SECRET,
        &["28: the file '.' is a directory, not a file"],
    );
}

#[test]
fn wrong_secrets() {
    const SECTION: &str = "{secret-file: secret}";
    check(
        SECTION,
        &format!("# ours\n{SECRET}0\n"),
        &[
            "28: the file 'secret' has no secret in line 2: expected 32 hexadecimal digits, not all \
           of them 0",
        ],
    );
    check(
        SECTION,
        "",
        &["28: the file 'secret' has no secret: expected 32 hexadecimal digits on a line"],
    );
    check(
        SECTION,
        &format!("{SECRET}\n").repeat(4),
        &[
            "28: the file 'secret' has more than 3 secrets: keep the active one, and those before and \
           after a roll-over",
        ],
    );
}
