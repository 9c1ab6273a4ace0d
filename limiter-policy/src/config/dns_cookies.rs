//! The section `dns-cookies`: which cookies prove sources.

use std::path::PathBuf;

use super::fields::{Field, Given};
use crate::{
    policy::DnsCookies,
    secrets::{self, Secrets},
};

const SECRET_FILE: &str = "secret-file";
const PORT: &str = "port";

/// The section as the file has it.
struct Section {
    port: u16,
    secrets: Option<(PathBuf, Secrets)>,
}

/// The fields of the section, in one line of the manual.
const FIELDS: [Field<Section>; 2] = [
    Field::unlisted(SECRET_FILE, |section, given| {
        section.secrets = read_secrets(given);
    }),
    Field::unlisted(PORT, |section, given| {
        given.whole(&mut section.port, 1..=u16::MAX.into());
    }),
];

/// Reads `dns-cookies`, and the secrets in the file that it names.
pub(super) fn read(given: &mut Given<'_, '_, '_>) -> Option<(DnsCookies, Secrets)> {
    let mut section = Section {
        port: DnsCookies::DEFAULT_PORT,
        secrets: None,
    };
    let expected = format!("a map with '{SECRET_FILE}' and '{PORT}'");
    let fields = given.map(&expected, &FIELDS, &mut section)?;
    if fields.is_missing(SECRET_FILE) {
        given.error(format!(
            "needs '{SECRET_FILE}', the file with the DNS server's secrets"
        ));
    }
    let Section { port, secrets } = section;
    secrets.map(|(secret_file, secrets)| (DnsCookies { secret_file, port }, secrets))
}

fn read_secrets(given: &mut Given<'_, '_, '_>) -> Option<(PathBuf, Secrets)> {
    let name = given.text("a file's name")?;
    let path = given.reader.named_path(given.node.at, name)?;
    match secrets::read(&path) {
        Ok(secrets) => Some((path, secrets)),
        Err(error) => {
            given.error(format!("the file '{}' {error}", path.display()));
            None
        }
    }
}
