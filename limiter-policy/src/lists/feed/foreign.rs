//! JSON documents with addresses that are not feeds. Each has its own structure, which `jq` reads better than
//! a special format here would.

use std::borrow::Cow;

/// A published document.
struct Document {
    name: &'static str,
    /// The fields that identify it.
    fields: &'static [&'static str],
    /// The filter for `jq` that writes its addresses, one a line.
    filter: &'static str,
}

const KNOWN: [Document; 5] = [
    Document {
        name: "AWS's ip-ranges.json",
        fields: &["createDate", "prefixes"],
        filter: ".prefixes[].ip_prefix, .ipv6_prefixes[].ipv6_prefix",
    },
    Document {
        name: "Google's list of prefixes",
        fields: &["creationTime", "prefixes"],
        filter: ".prefixes[] | .ipv4Prefix // .ipv6Prefix",
    },
    Document {
        name: "AbuseIPDB's blacklist",
        fields: &["meta", "data"],
        filter: ".data[].ipAddress",
    },
    Document {
        name: "Azure's service tags",
        fields: &["changeNumber", "values"],
        filter: ".values[].properties.addressPrefixes[]",
    },
    Document {
        name: "Fastly's list of addresses",
        fields: &["addresses", "ipv6_addresses"],
        filter: ".addresses[], .ipv6_addresses[]",
    },
];

/// Returns the name of the document with these fields, and a command that makes it a feed. Shows no field: a
/// feed's owner could link the path to another user's file and read its content in the log.
pub(super) fn found(fields: &[String]) -> Cow<'static, str> {
    let are_of = |known: &&Document| {
        let mut telling = known.fields.iter();
        telling.all(|field| fields.iter().any(|one| one == field))
    };
    match KNOWN.iter().find(are_of) {
        Some(Document { name, filter, .. }) => {
            format!("{name}: write its addresses one a line, with `jq -r '{filter}'`").into()
        }
        None => "another JSON object: write its addresses one a line".into(),
    }
}
