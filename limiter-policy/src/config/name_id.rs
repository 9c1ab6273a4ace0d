//! The ids of overrides by name: zones, domains, questions and server names.

use limiter_common::limit::{IdFormat, KeyPart};

use super::{
    diagnostics::{FilePosition, Problems},
    id,
    limit_id::LimitKeys,
    limits::Limits,
    overrides::NamedId,
};
use crate::{
    policy::{DnsName, DomainLabels, Mode, OverriddenName, OverrideId, SuffixRule},
    prefix::{AddressOrPrefix, PrefixError},
};

/// Parses an id in the format of its limit, normalized.
///
/// # Errors
///
/// The error and its correction.
pub(super) fn parse(text: &str, keys: LimitKeys) -> Result<OverrideId, String> {
    let Some(key_part) = keys.key_part() else {
        return id::parse(text, keys.format);
    };
    if keys.per_name.is_none() {
        return name(text, key_part).map(OverrideId::Name);
    }
    let whole = id::parse(text, keys.format);
    if whole.is_ok() || is_meant_as_source(text, keys.format) {
        return whole;
    }
    // Names have no colons.
    match text.rsplit_once(':') {
        Some((source, name_text)) => {
            let source = id::parse(source, keys.format)?;
            Ok(source.with_name(name(name_text, key_part)?))
        }
        None => name(text, key_part)
            .map(OverrideId::Name)
            .map_err(|_| format!("invalid id '{text}', expected {}", expectation(keys))),
    }
}

/// Describes the ids of a limit's overrides, with an example.
pub(super) fn expectation(keys: LimitKeys) -> String {
    let of_sources = id::expectation(keys.format);
    match keys.key_part() {
        None => of_sources,
        Some(key_part) if keys.per_name.is_none() => name_expectation(key_part).to_owned(),
        Some(key_part) => format!(
            "{of_sources}; or {}; or both, with a colon between",
            name_expectation(key_part)
        ),
    }
}

const fn name_expectation(key_part: KeyPart) -> &'static str {
    match key_part {
        KeyPart::Zone => "a zone, such as 'example.com'",
        KeyPart::Question => "a name and a type, such as 'www.example.com A'",
        KeyPart::ServerName => "a server name, such as 'shop.example'",
        _ => "a registered domain, such as 'example.com'",
    }
}

/// Returns whether a text can only be meant as a source, even an invalid one.
fn is_meant_as_source(text: &str, format: IdFormat) -> bool {
    match format.key_part() {
        Some(_) => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
        None => !matches!(AddressOrPrefix::parse(text), Err(PrefixError::Malformed)),
    }
}

fn name(text: &str, key_part: KeyPart) -> Result<OverriddenName, String> {
    let invalid = |why: String| Err(format!("invalid id '{text}', {why}"));
    if key_part == KeyPart::Question && text.contains(',') {
        // Boulder's spelling of a set of names.
        let why = "a query asks for one name: give each an override of its own, such as 'www.example.com A'";
        return invalid(why.to_owned());
    }
    match text.parse::<OverriddenName>() {
        Ok(name) if name.question.is_some() == (key_part == KeyPart::Question) => Ok(name),
        Ok(_) => invalid(format!("expected {}", name_expectation(key_part))),
        Err(error) => invalid(error.to_string()),
    }
}

/// The names in other sections that overrides may refer to.
pub(super) struct DeclaredNames<'k> {
    /// Sorted; `None`: unknown.
    pub(super) zones: Option<&'k [DnsName]>,
    /// Sorted; `None`: unknown.
    pub(super) server_names: Option<&'k [DnsName]>,
}

/// Reports zones and server names without a bucket.
pub(super) fn check_owned(
    by_name: &[NamedId],
    limits: &Limits,
    known: &DeclaredNames<'_>,
    problems: &mut Problems,
) {
    for one in by_name {
        let (names, kind, section) = match limits.get(one.limit).keys().key_part() {
            Some(KeyPart::Zone) => (known.zones, "zone", "zones"),
            Some(KeyPart::ServerName) => (known.server_names, "server name", "server-names"),
            _ => continue,
        };
        if names.is_some_and(|names| names.binary_search(&one.name.name).is_err()) {
            let name = &one.name;
            let message =
                format!("invalid id '{name}', no such {kind}: name it in '{section}', too");
            problems.report_at(one.at, message);
        }
    }
}

/// Reports names that are not registered domains by these rules.
pub(super) fn check_domains(
    by_name: &[NamedId],
    limits: &Limits,
    rules: &[SuffixRule],
    problems: &mut Problems,
) {
    let of_domains: Vec<&NamedId> = by_name
        .iter()
        .filter(|one| {
            let limit = limits.get(one.limit);
            // The rules are not read for a disabled limit.
            limit.mode != Mode::Off && limit.is_of_domains()
        })
        .collect();
    if of_domains.is_empty() {
        return;
    }
    let labels = DomainLabels::new(rules);
    for NamedId { name, at, .. } in of_domains {
        report_unregistered(&name.name, &labels, *at, problems);
    }
}

fn report_unregistered(
    name: &DnsName,
    labels: &DomainLabels,
    at: FilePosition,
    problems: &mut Problems,
) {
    let message = match labels.registered(name) {
        Some(domain) if domain == *name => return,
        Some(domain) => format!(
            "invalid id '{name}', must be a registered domain: did you mean '{domain}', which has it?"
        ),
        None => format!("invalid id '{name}', a public suffix, below which domains are registered"),
    };
    problems.report_at(at, message);
}

#[cfg(test)]
mod tests {
    use limiter_common::limit::NameKind;

    use super::*;

    const PAIR: LimitKeys = LimitKeys {
        format: IdFormat::IpAddress,
        per_name: Some(NameKind::Domain),
    };

    #[test]
    fn a_source_a_name_or_both() {
        let of_subscribers = LimitKeys {
            format: IdFormat::RegId,
            per_name: Some(NameKind::Question),
        };
        for (text, keys, id) in [
            ("Example.COM.", LimitKeys::of(IdFormat::Zone), "example.com"),
            (".", LimitKeys::of(IdFormat::Zone), "."),
            ("a.b a", LimitKeys::of(IdFormat::Question), "a.b A"),
            (
                "shop.example",
                LimitKeys::of(IdFormat::ServerName),
                "shop.example",
            ),
            ("192.0.2.7", PAIR, "192.0.2.7"),
            ("2001:db8::/64", PAIR, "2001:db8::/64"),
            ("example.com", PAIR, "example.com"),
            ("192.0.2.7.", PAIR, "192.0.2.7."),
            ("192.0.2.7:example.com", PAIR, "192.0.2.7:example.com"),
            ("2001:DB8::/32:7", PAIR, "2001:db8::/32:7"),
            ("7", of_subscribers, "7"),
            ("a.b TXT", of_subscribers, "a.b TXT"),
            ("7:a.b txt", of_subscribers, "7:a.b TXT"),
        ] {
            let found = parse(text, keys).map(|id| id.to_string());
            assert_eq!(found, Ok(id.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_neither() {
        let numbers = LimitKeys {
            format: IdFormat::RegId,
            per_name: Some(NameKind::Zone),
        };
        for (text, keys, why) in [
            ("a.b A", LimitKeys::of(IdFormat::Zone), "expected a zone"),
            (
                "a.b",
                LimitKeys::of(IdFormat::Question),
                "expected a name and a type",
            ),
            (
                "a_*",
                LimitKeys::of(IdFormat::Domain),
                "must have no '*' here",
            ),
            ("192.0.2.1/24", PAIR, "did you mean '192.0.2.0/24'?"),
            ("192.0.2.1/32:a.b", PAIR, "did you mean '192.0.2.1'?"),
            ("7:a.b", PAIR, "expected an IPv4 or IPv6 address"),
            ("", PAIR, "or both, with a colon between"),
            ("01", numbers, "expected a subscriber's number"),
            ("01:a.b", numbers, "expected a subscriber's number"),
            ("1:a..b", numbers, "must have no empty label"),
        ] {
            let error = parse(text, keys).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
