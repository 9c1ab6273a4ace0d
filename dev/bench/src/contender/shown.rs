//! The contenders' settings for the document, taken from the text that configures them.

use super::{
    hashlimit,
    limiter::{BANS, Limits, OVERRIDES},
    names, nftables,
    standing::SPENT_COUNT,
    terms::{ROOM, Terms},
    windows::{FASTEST_PACKET_NS, REFUSED_COUNT},
};

/// A contender's description for readers.
pub(crate) struct ContenderDescription {
    /// Its name, or the common beginning of several contenders' names.
    pub(crate) name: &'static str,
    /// A description.
    pub(crate) sentence: String,
    /// Its settings word for word, with their language; `None` if it has none.
    pub(crate) configuration: Option<(&'static str, String)>,
}

/// Returns all contenders with these terms, in the order of the results.
pub(crate) fn shown(terms: &Terms) -> Vec<ContenderDescription> {
    let room = ROOM.ilog2();
    let program = |name, sentence: &str| ContenderDescription {
        name,
        sentence: sentence.to_owned(),
        configuration: None,
    };
    vec![
        program(
            names::DROP,
            "an XDP program that counts and drops each packet.",
        ),
        program(
            names::PARSE,
            "an XDP program that parses as the limiter does, reads the clock, and drops.",
        ),
        program(
            names::LINE,
            "the same, and it reads the source's line in a table as large as that of 1 limit, as \
             any\nlimiter with state for each source must.",
        ),
        ContenderDescription {
            name: "limiter",
            sentence: format!(
                "room for 2^{room} buckets of each limit, in the store of its name (`buckets: \
                 {{store: table}}` or `hash`).\n\n\
                 | row | setting |\n|---|---|\n\
                 | 1 limit | `PacketsPerIPAddress` of the configuration below |\n\
                 | 2 limits | and `BytesPerIPAddress` |\n\
                 | address + range | the limits on packets, of an address and of its range |\n\
                 | 4 limits | all below |\n\
                 | 100 k overrides | 1 limit, and another rate for each of {OVERRIDES} prefixes of 16 \
                 addresses |\n\
                 | 100 k listed | 1 limit, and as many prefixes on a blocked list, with one in 168 of \
                 16 M sources |\n\
                 | 500 k bans | 1 limit, and {BANS} banned addresses outside the flood |\n\
                 | sieve | 1 limit, and a sieve of 10 lists, 2^15 addresses in the largest, which \
                 scores every packet and drops none |\n\
                 | in common | 1 limit of a fleet of two nodes, with half of it for each |\n\
                 | address + total | 1 limit, and one on all sources together |\n\
                 | standing | the same, with reserves in the second; there is enough for all |\n\
                 | standing, unknown refused | the second allows {SPENT_COUNT} packets an hour; unknown \
                 sources are refused |\n\
                 | a strategy | 1 limit of this strategy, which refuses none: a second, or a moving \
                 window of N × {FASTEST_PACKET_NS} ns a source |\n\
                 | refused | 1 limit of {REFUSED_COUNT} packets an hour |"
            ),
            configuration: Some(("yaml", Limits::Four.configuration(terms))),
        },
        ContenderDescription {
            name: names::WINDOW,
            sentence: format!(
                "an XDP limiter like the public ones: a second's count for each source, in the \
                 kernel's LRU\nhash map with room for 2^{room}; no overrides."
            ),
            configuration: None,
        },
        ContenderDescription {
            name: names::NFTABLES,
            sentence: "at the netdev hook, its first, with room for every source.".to_owned(),
            configuration: Some(("", nftables::ruleset(terms))),
        },
        ContenderDescription {
            name: names::HASHLIMIT,
            sentence: "in raw PREROUTING, its first hook, with the kernel's maximum of 2^20 \
                       sources; once full, it\ndrops every new one, clients among them."
                .to_owned(),
            configuration: Some(("", hashlimit::rules(terms).join("\n") + "\n")),
        },
    ]
}
