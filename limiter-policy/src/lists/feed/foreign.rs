//! JSON documents that are no feeds, though they have addresses: each has its own structure, which
//! `jq` reads better than a format of ours for each.

use super::entries::shown;

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

/// How many fields of an unknown document are told.
const MOST_TOLD: usize = 4;

/// Says what a document with these fields is, and how it becomes a feed.
pub(super) fn found(fields: &[String]) -> String {
    let are_of = |known: &&Document| {
        let mut telling = known.fields.iter();
        telling.all(|field| fields.iter().any(|one| one == field))
    };
    if let Some(known) = KNOWN.iter().find(are_of) {
        let Document { name, filter, .. } = known;
        return format!("{name}: write its addresses one a line, with `jq -r '{filter}'`");
    }
    let told: Vec<String> = fields
        .iter()
        .take(MOST_TOLD)
        .map(|field| format!("'{}'", shown(field)))
        .collect();
    let object = if told.is_empty() {
        "an empty JSON object".to_owned()
    } else {
        let more = if fields.len() > MOST_TOLD {
            ", …"
        } else {
            ""
        };
        format!("a JSON object with {}{more}", told.join(", "))
    };
    format!("{object}: write its addresses one a line")
}
