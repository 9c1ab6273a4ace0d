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
    pub(crate) told: Option<(&'static str, String)>,
}

/// Returns all contenders with these terms, in the order of the results.
pub(crate) fn shown(terms: &Terms) -> Vec<ContenderDescription> {
    let room = ROOM.ilog2();
    let program = |name, sentence: &str| ContenderDescription {
        name,
        sentence: sentence.to_owned(),
        told: None,
    };
    vec![
        program(
            names::DROP,
            "an XDP program that counts each packet and drops it: nothing is faster.",
        ),
        program(
            names::PARSE,
            "an XDP program that parses as the limiter does, reads the clock, and drops.",
        ),
        program(
            names::LINE,
            "the same, and it reads the source's line in a table as large as that of 1 limit, as \
             any limiter with state for each source must.",
        ),
        ContenderDescription {
            name: "limiter",
            sentence: format!(
                "this one, with room for 2^{room} buckets of each limit in the store of its name \
                 (`buckets: {{store: table}}` or `hash`). With 4 limits as below; 1 limit is \
                 PacketsPerIPAddress alone, 2 limits add BytesPerIPAddress, and address + range adds \
                 PacketsPerIPv4Range and PacketsPerIPv6Range to it. 100 k overrides: 1 limit, and \
                 another rate for each of {OVERRIDES} prefixes of 16 addresses. 100 k listed: 1 \
                 limit, and as many such prefixes on a blocked list, which holds one in 168 of \
                 the largest flood's sources. 500 k bans: 1 limit, and {BANS} banned addresses, \
                 none of them a source of the flood. Sieve: 1 limit, and a sieve of 10 lists \
                 with 2^15 addresses in the largest, under a pressure that scores every packet \
                 and drops none. In common: 1 limit, which a fleet of two nodes has in common; each address \
                 has its half. Address + total: 1 limit, and one on all sources together. \
                 Standing: the same, and the second limit keeps a tenth of its burst for proven \
                 sources and half of it for known ones; all sources visit, and there is enough for \
                 all. Standing, known: in a shortage, all sources are familiar, and pass. Standing, \
                 unknown refused: the second limit lets {SPENT_COUNT} packets an hour pass, and keeps \
                 what is left for familiar sources; a retry counts only after 11.95 s, so hardly any \
                 does. Each strategy: 1 limit, which refuses nothing either; a window is a second \
                 long, and a moving window N × {FASTEST_PACKET_NS} ns for each source, so that its \
                 log is not empty. Its stamps are buckets like others, in the same room. Refused: 1 \
                 limit of {REFUSED_COUNT} packets an hour, with few sources."
            ),
            told: Some(("yaml", Limits::Four.configuration(terms))),
        },
        ContenderDescription {
            name: names::WINDOW,
            sentence: format!(
                "an XDP limiter like the public ones: a second's count for each source, in the \
                 kernel's LRU hash map with room for 2^{room}. One limit for all sources, without \
                 overrides."
            ),
            told: None,
        },
        ContenderDescription {
            name: names::NFTABLES,
            sentence: "at the netdev hook, its first, with room for every source.".to_owned(),
            told: Some(("", nftables::ruleset(terms))),
        },
        ContenderDescription {
            name: names::HASHLIMIT,
            sentence: "in raw PREROUTING, its first hook, with room for every source; but the \
                       kernel gives it 2^20 at most, and once it is full it drops every new \
                       source, clients among them."
                .to_owned(),
            told: Some(("", hashlimit::rules(terms).join("\n") + "\n")),
        },
    ]
}
