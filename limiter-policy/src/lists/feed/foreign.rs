//! JSON documents that are no feeds, though they have addresses: each has its own structure, which
//! `jq` reads better than a format of ours for each.

use std::borrow::Cow;

/// A published document.
struct Document {
    name: &'static str,
    /// Fields that tell it from others.
    fields: &'static [&'static str],
    /// The filter by which `jq` writes its addresses, one a line.
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

/// Names the document with these fields, and says how it becomes a feed. The fields are not shown: a
/// feed's owner could make it lead to a file of others.
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
