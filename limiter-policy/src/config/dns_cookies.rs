//! The section `dns-cookies`: which cookies prove sources.

use std::path::Path;

use super::{node::Node, reader::Reader, surroundings::named_path};
use crate::{
    policy::DnsCookies,
    secrets::{self, Secrets},
};

const SECRET_FILE: &str = "secret-file";
const PORT: &str = "port";

/// Reads `dns-cookies`, and the secrets in the file that it names.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    directory: Option<&Path>,
) -> Option<(DnsCookies, Secrets)> {
    let expected = format!("a map with '{SECRET_FILE}' and '{PORT}'");
    let fields = reader.fields(node, &expected, &[SECRET_FILE, PORT])?;
    let port = match fields.get(PORT) {
        Some(node) => reader.whole(node, PORT, 1..=u64::from(u16::MAX)),
        None => Some(DnsCookies::DEFAULT_PORT.into()),
    };
    let Some(node) = fields.get(SECRET_FILE) else {
        if fields.is_missing(SECRET_FILE) {
            let message = format!("needs '{SECRET_FILE}', the file with the DNS server's secrets");
            reader.error(node.at, message);
        }
        return None;
    };
    let name = reader.text(node, "a file's name")?;
    let secret_file = named_path(reader, node.at, name, directory)?;
    let secrets = match secrets::read(&secret_file) {
        Ok(secrets) => secrets,
        Err(error) => {
            let file = secret_file.display();
            reader.error(node.at, format!("the file '{file}' {error}"));
            return None;
        }
    };
    let port = u16::try_from(port?).ok()?;
    Some((DnsCookies { secret_file, port }, secrets))
}
