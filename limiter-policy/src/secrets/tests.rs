use std::{fs, os::unix::fs::PermissionsExt as _};

use tempfile::TempDir;

use super::*;

const FIRST: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
const SECOND: &str = "445536bcd2513298075a5d379663c962";

fn secret_of(hex: &str) -> Secret {
    let number = u128::from_str_radix(hex, 16).unwrap();
    Secret::new(number.to_be_bytes()).unwrap()
}

fn error(text: &str) -> String {
    parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn servers_write_them_in_these_ways() {
    let both = vec![secret_of(FIRST), secret_of(SECOND)];
    for text in [
        format!("{FIRST}\n{SECOND}\n"),
        format!("# the active one\r\n 0x{FIRST} # since May\r\n\r\n\t\"{SECOND}\""),
        format!("\"0x{}\"\n{SECOND}", FIRST.to_uppercase()),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap(), both, "{text}");
    }
    let three = format!("{FIRST}\n{SECOND}\n{FIRST}\n");
    assert_eq!(parse(three.as_bytes()).unwrap().len(), 3);
}

#[test]
fn errors_name_the_line_and_show_nothing_of_it() {
    const NO_SECRET: &str = "expected 32 hexadecimal digits, not all of them 0";
    for line in [
        &FIRST[..31],
        &format!("{FIRST}0"),
        &FIRST.replace('e', "g"),
        &format!("\"{FIRST}"),
        &format!("x{FIRST}"),
        &format!("cookie-secret \"{FIRST}\";"),
        &format!("{FIRST} {SECOND}"),
        "00000000000000000000000000000000",
        "\u{e9}5e973e5a6b2a43f48e7dc849e37bfcf",
    ] {
        let error = error(&format!("{SECOND}\n# next\n{line}\n"));
        assert_eq!(
            error,
            format!("has no secret in line 3: {NO_SECRET}"),
            "{line}"
        );
    }
    assert!(error("# none yet\n\n").starts_with("has no secret"));
    let four = format!("{FIRST}\n").repeat(4);
    assert!(error(&four).starts_with("has more than 3 secrets"));
}

#[test]
fn a_file_that_everybody_reads_is_told() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("secret");
    assert!(matches!(read(&path), Err(SecretsError::Unreadable(_))));
    fs::write(&path, FIRST).unwrap();
    for (mode, others_can_read) in [(0o600, false), (0o640, false), (0o644, true)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let read = read(&path).unwrap();
        assert_eq!(read.others_can_read, others_can_read, "{mode:o}");
        assert_eq!(read.secrets, [secret_of(FIRST)]);
    }
}
