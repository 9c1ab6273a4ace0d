//! The sections `standing` and `dns-cookies`: the rules for sources' standing, and the cookies that prove sources.

use std::{ops::RangeInclusive, path::PathBuf};

use limiter_common::standing::Settings;

use super::{
    fields::{self, Field, Given},
    list_names::{self, ListNames},
    reader::{Fields, Reader},
};
use crate::{
    policy::{DnsCookies, Proof, Retry, StandingSettings, Visits},
    secrets::{self, Secrets},
    text,
};

const REMEMBER: &str = "remember";
const VISITS: &str = "visits";
const PROVEN_BY: &str = "proven-by";
const PROVEN: &str = "proven";
const APART: &str = "apart";
const AFTER: &str = "after";
const WITHIN: &str = "within";

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;
const YEAR_NS: u64 = 8_760 * 3_600 * SECOND_NS;

/// A source takes 64 bytes: at most 1 GiB.
const CAPACITIES: RangeInclusive<u64> = 1024..=1 << 24;

/// The bits of an IPv6 address that a source may have: its upper half names it.
const PREFIXES: RangeInclusive<u64> = 16..=64;

const REMEMBER_NS: RangeInclusive<u64> = MINUTE_NS..=YEAR_NS;

/// A shorter time would not hold back a flood: a pause of a minute would begin another shortage.
const FRESH_NS: RangeInclusive<u64> = MINUTE_NS..=YEAR_NS;

/// A record has four bits for occasions.
const OCCASIONS: RangeInclusive<u64> = 1..=15;

/// A record's times are whole numbers of 2^30 nanoseconds.
const APART_NS: RangeInclusive<u64> = 2 * SECOND_NS..=YEAR_NS;

/// First tries are remembered with a resolution of 50 ms.
const RETRY_NS: RangeInclusive<u64> = 50_000_000..=Settings::LONGEST_RETRY_NS;

#[derive(Default)]
pub(super) struct Section {
    settings: StandingSettings,
    /// The lists of proven sources.
    pub(super) proven: ListNames,
}

impl Section {
    /// Returns the settings with the names of the lists.
    pub(super) fn to_settings(&self) -> StandingSettings {
        StandingSettings {
            proven: self.proven.to_names(),
            ..self.settings.clone()
        }
    }
}

pub(super) const FIELDS: &[Field<Section>] = &[
    Field::new(
        "capacity",
        "sources known at once, 1024 to 16777216 (1000000)",
        |section, given| given.whole(&mut section.settings.capacity, CAPACITIES),
    ),
    Field::new(
        "ipv6-prefix",
        "leading bits of an IPv6 address that are one source, 16 to 64 (64)",
        |section, given| given.whole(&mut section.settings.ipv6_prefix, PREFIXES),
    ),
    Field::new(
        REMEMBER,
        "how long after its last visit, 1m to 8760h (30d)",
        |section, given| given.duration(&mut section.settings.remember_ns, &REMEMBER_NS),
    ),
    Field::new(
        "fresh-for",
        "a source that became familiar or proven less than this before a \
         [shortage](known-clients.md#the-five-standings) is fresh in it; 1m to 8760h (1h)",
        |section, given| given.duration(&mut section.settings.fresh_for_ns, &FRESH_NS),
    ),
    Field::new(
        VISITS,
        "map: `count`, 1 to 15, and `apart`, 2s to 8760h and below `remember` (`{count: 3, apart: 1m}`); or `off`: \
         no source becomes familiar",
        read_visits,
    )
    .then(check_remembered),
    Field::new(
        "retry",
        "map: `after` and `within`, 50ms to 12s: how soon and how late a second try counts \
         (`{after: 200ms, within: 10s}`)",
        read_retry,
    ),
    Field::new(
        PROVEN_BY,
        "`handshake`, `list`, or both (both)",
        read_proofs,
    ),
    Field::new(
        PROVEN,
        "names of lists; needs `list` in `proven-by`",
        |section, given| {
            section.proven = list_names::read(given, None);
            if !section.settings.proven_by.contains(&Proof::List) {
                let message = format!(
                    "'{PROVEN}' has no effect: add '{}' to '{PROVEN_BY}'",
                    Proof::List.name()
                );
                given.reader.error(given.name.at, message);
            }
        },
    ),
];

pub(super) fn read(given: &mut Given<'_, '_, '_>) -> Section {
    let mut section = Section::default();
    let names = fields::names(FIELDS).join(", ");
    given.map(&format!("a map with {names}"), FIELDS, &mut section);
    section
}

const VISIT_FIELDS: &[Field<Visits>] = &[
    Field::unlisted("count", |visits, given| {
        given.whole(&mut visits.count, OCCASIONS);
    }),
    Field::unlisted(APART, |visits, given| {
        given.duration(&mut visits.apart_ns, &APART_NS);
    }),
];

/// Reads the condition for familiar sources.
fn read_visits(section: &mut Section, given: &mut Given<'_, '_, '_>) {
    const EXPECTED: &str = "a map, such as {count: 3, apart: 1m}, or 'off'";
    let settings = &mut section.settings;
    if given.reader.scalar(given.node) == Some("off") {
        settings.visits = None;
        return;
    }
    let (Some(visits), remember_ns) = (&mut settings.visits, settings.remember_ns) else {
        return;
    };
    let Some(fields) = given.map(EXPECTED, VISIT_FIELDS, visits) else {
        return;
    };
    if visits.apart_ns >= remember_ns {
        let at = fields.get(APART).unwrap_or(given.node).at;
        let (apart, remember) = (text::period(visits.apart_ns), text::period(remember_ns));
        let message = format!(
            "invalid {APART} '{apart}', must be below '{REMEMBER}', {remember}: a source would be \
             forgotten before its second visit"
        );
        given.reader.error(at, message);
    }
}

/// Reports that sources are forgotten before their second visit, if the file says nothing about visits.
fn check_remembered(section: &mut Section, reader: &mut Reader<'_, '_>, fields: &Fields<'_>) {
    let settings = &section.settings;
    if let (Some(node), None) = (fields.get(REMEMBER), fields.get(VISITS))
        && let Some(visits) = settings.visits
        && visits.apart_ns >= settings.remember_ns
    {
        let (remember, apart) = (
            text::period(settings.remember_ns),
            text::period(visits.apart_ns),
        );
        let message = format!(
            "invalid {REMEMBER} '{remember}', must be above '{APART}' of '{VISITS}', {apart}: a \
             source would be forgotten before its second visit"
        );
        reader.error(node.at, message);
    }
}

const RETRY_FIELDS: &[Field<Retry>] = &[
    Field::unlisted(AFTER, |retry, given| {
        given.duration(&mut retry.after_ns, &RETRY_NS);
    }),
    Field::unlisted(WITHIN, |retry, given| {
        given.duration(&mut retry.within_ns, &RETRY_NS);
    }),
];

fn read_retry(section: &mut Section, given: &mut Given<'_, '_, '_>) {
    const EXPECTED: &str = "a map, such as {after: 200ms, within: 10s}";
    let retry = &mut section.settings.retry;
    let Some(fields) = given.map(EXPECTED, RETRY_FIELDS, retry) else {
        return;
    };
    if retry.after_ns >= retry.within_ns {
        let (after, within) = (text::period(retry.after_ns), text::period(retry.within_ns));
        let (at, message) = match fields.get(AFTER) {
            Some(node) => (
                node.at,
                format!("invalid {AFTER} '{after}', must be below '{WITHIN}', {within}"),
            ),
            None => (
                fields.get(WITHIN).unwrap_or(given.node).at,
                format!("invalid {WITHIN} '{within}', must be above '{AFTER}', {after}"),
            ),
        };
        given.reader.error(at, message);
    }
}

/// Reads the accepted proofs of a source, in a fixed order.
fn read_proofs(section: &mut Section, given: &mut Given<'_, '_, '_>) {
    let known = Proof::ALL.map(|proof| (proof.name(), proof.name()));
    let proofs = given.list(
        "proofs",
        |reader, item| reader.choice(item, "proof", known),
        |_, proof| format!("proof '{proof}'"),
    );
    // Without a valid proof, all are accepted: an error must cause no further ones.
    let mut accepted = Proof::ALL.to_vec();
    accepted.retain(|proof| proofs.is_empty() || proofs.contains(&proof.name()));
    section.settings.proven_by = accepted;
}

const SECRET_FILE: &str = "secret-file";
const PORT: &str = "port";

/// The section as the file has it.
struct CookieSection {
    port: u16,
    secrets: Option<(PathBuf, Secrets)>,
}

/// The fields of the section, in one line of the manual.
const COOKIE_FIELDS: &[Field<CookieSection>] = &[
    Field::unlisted(SECRET_FILE, |section, given| {
        section.secrets = read_secrets(given);
    }),
    Field::unlisted(PORT, |section, given| {
        given.whole(&mut section.port, 1..=u16::MAX.into());
    }),
];

/// Reads `dns-cookies`, and the secrets in the file that it names.
pub(super) fn read_cookies(given: &mut Given<'_, '_, '_>) -> Option<(DnsCookies, Secrets)> {
    let mut section = CookieSection {
        port: DnsCookies::DEFAULT_PORT,
        secrets: None,
    };
    let expected = format!("a map with '{SECRET_FILE}' and '{PORT}'");
    let fields = given.map(&expected, COOKIE_FIELDS, &mut section)?;
    if fields.is_missing(SECRET_FILE) {
        given.error(format!(
            "needs '{SECRET_FILE}', the file with the DNS server's secrets"
        ));
    }
    let CookieSection { port, secrets } = section;
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
