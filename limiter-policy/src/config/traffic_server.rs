//! Options of Traffic Server's rate_limit plugin that mean nothing for packets.

/// Those that somebody who comes from there may write, and why they are not here.
const OPTIONS: [(&str, &str); 9] = [
    (
        "selector",
        "names of TLS handshakes select nothing here: give 'limits', which say by 'match' what \
         they count",
    ),
    (
        "sni",
        "packets have no name of a TLS handshake: say by 'match' what a limit counts",
    ),
    (
        "aliases",
        "packets have no name of a TLS handshake: say by 'match' what a limit counts",
    ),
    (
        "queue",
        "no packet can be made to wait: what is over a limit is dropped",
    ),
    ("maxage", "no packet can be made to wait, so none grows old"),
    ("error", "it is an HTTP status, and packets get no answer"),
    ("retry", "it is an HTTP header, and packets get no answer"),
    ("header", "it is an HTTP header, which packets have not"),
    (
        "conntrack",
        "new connections are counted by limits with 'cost: new-connections'",
    ),
];

/// What is to be said of such an option; `None`: it is none.
pub(super) fn without_meaning(name: &str) -> Option<String> {
    let (name, why) = OPTIONS.iter().find(|(option, _)| *option == name)?;
    Some(format!("'{name}' has no meaning here: {why}"))
}
