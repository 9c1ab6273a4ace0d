//! Options of Traffic Server's rate_limit plugin that have no meaning for packets.

/// The options that a Traffic Server user may write, and the reasons why we lack them.
const OPTIONS: [(&str, &str); 9] = [
    ("selector", "it is a section of its own"),
    (
        "sni",
        "it is of the section 'selector'; use `match: {server-name: …}` of a limit",
    ),
    (
        "aliases",
        "it is of the section 'selector'; use `match: {server-name: …}` of a limit",
    ),
    (
        "queue",
        "clients wait for a limit with 'cost: connections', and it belongs there",
    ),
    (
        "maxage",
        "use 'max-age' of the 'queue' of a limit with 'cost: connections'",
    ),
    ("error", "it is an HTTP status, and packets get no answer"),
    ("retry", "it is an HTTP header, and packets get no answer"),
    ("header", "it is an HTTP header, which packets do not have"),
    (
        "conntrack",
        "use a limit with 'cost: new-connections' to count new connections",
    ),
];

/// Returns the error for such an option; `None`: another name.
pub(super) fn without_meaning(name: &str) -> Option<String> {
    let (name, why) = OPTIONS.iter().find(|(option, _)| *option == name)?;
    Some(format!("'{name}' has no meaning here: {why}"))
}
