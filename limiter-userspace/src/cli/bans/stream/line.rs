//! Parses lines: `ADDRESS|PREFIX [DURATION] [REASON]` bans, `-ADDRESS|PREFIX` or `unban ADDRESS|PREFIX` lifts
//! the ban of the stream's origin.

use limiter_protocol::bans::{BanChange, BanRequest, UnbanRequest};

use crate::cli::{
    bans::{parse, terms::Terms},
    parse::ParsedValue,
    stream::lines::word,
};

/// Parses a line that is neither empty nor a comment.
pub(super) fn parse(line: &str, terms: &Terms) -> Result<ParsedValue<BanChange>, String> {
    let origin = terms.origin.clone().unwrap_or_default();
    let (target, rest) = word(line);
    let lifted = match target.strip_prefix('-') {
        Some(target) => Some((target, rest)),
        None if target == "unban" => Some(word(rest)),
        None => None,
    };
    if let Some((target, rest)) = lifted {
        let prefix = parse::stream_prefix(target)?;
        return if rest.is_empty() {
            Ok(prefix.map(|prefix| {
                BanChange::Unban(UnbanRequest {
                    prefix,
                    origin: Some(origin),
                })
            }))
        } else {
            Err(format!(
                "nothing may follow the address to unban, but '{rest}' does"
            ))
        };
    }
    let prefix = parse::stream_prefix(target)?;
    // A reason that begins with a number counts as a malformed duration: an error is better than a ban without
    // end.
    let (duration, after) = word(rest);
    let has_duration =
        duration.starts_with(|first: char| first.is_ascii_digit()) || parse::is_for_ever(duration);
    let (length, reason) = if has_duration {
        let length = parse::length(duration)
            .map_err(|error| format!("invalid duration '{duration}': {error}"))?;
        (length, after)
    } else {
        (ParsedValue::plain(terms.length.value), rest)
    };
    let reason = if reason.is_empty() {
        terms.reason.clone()
    } else {
        parse::reason(reason)?
    };
    Ok(prefix.and(length).map(|(prefix, length)| {
        BanChange::Ban(BanRequest {
            prefix,
            for_ns: length.ns,
            reason,
            origin,
            keeps_longer: false,
        })
    }))
}

#[cfg(test)]
mod tests {
    use limiter_policy::policy::bans::Origin;

    use super::*;
    use crate::cli::bans::parse::BanLength;
    use limiter_protocol::bans::BanReason;

    fn terms() -> Terms {
        Terms {
            length: ParsedValue::plain(BanLength { ns: Some(60) }),
            reason: BanReason::try_from("the stream's".to_owned()).unwrap(),
            origin: Some(Origin::CROWDSEC),
        }
    }

    #[test]
    fn lines() {
        let ban = |prefix: &str, for_ns, reason: &str| {
            Ok(BanChange::Ban(BanRequest {
                prefix: prefix.parse().unwrap(),
                for_ns,
                reason: BanReason::try_from(reason.to_owned()).unwrap(),
                origin: Origin::CROWDSEC,
                keeps_longer: false,
            }))
        };
        let unban = |prefix: &str| {
            Ok(BanChange::Unban(UnbanRequest {
                prefix: prefix.parse().unwrap(),
                origin: Some(Origin::CROWDSEC),
            }))
        };
        let error = |text: &str| Err(text.to_owned());
        let rows = [
            ("192.0.2.1", ban("192.0.2.1/32", Some(60), "the stream's")),
            (
                "192.0.2.1 10s",
                ban("192.0.2.1/32", Some(10_000_000_000), "the stream's"),
            ),
            (
                "2001:db8::/48\t1h  two words",
                ban("2001:db8::/48", Some(3_600_000_000_000), "two words"),
            ),
            (
                "192.0.2.1 ssh: 3 failures",
                ban("192.0.2.1/32", Some(60), "ssh: 3 failures"),
            ),
            (
                "192.0.2.1 -1 for ever",
                ban("192.0.2.1/32", None, "for ever"),
            ),
            ("192.0.2.1 -1s", ban("192.0.2.1/32", None, "the stream's")),
            ("-192.0.2.1", unban("192.0.2.1/32")),
            ("unban 192.0.2.0/24", unban("192.0.2.0/24")),
            (
                "192.0.2.1 3 failures",
                error(
                    "invalid duration '3': its unit is missing: ns, us, ms, s, m, h, d or w, such as '3s'",
                ),
            ),
            (
                "-192.0.2.1 10s",
                error("nothing may follow the address to unban, but '10s' does"),
            ),
            (
                "192.0.2.1/24 140737488355327s",
                ban("192.0.2.0/24", None, "the stream's"),
            ),
            ("-::ffff:192.0.2.1", unban("192.0.2.1/32")),
            (
                "0.0.0.0/0",
                error("invalid '0.0.0.0/0': it would ban everybody"),
            ),
            (
                "unban",
                error(
                    "invalid '': expected an address or a prefix, such as 192.0.2.1 or \
                     2001:db8::/48",
                ),
            ),
        ];
        for (line, expected) in rows {
            let read = parse(line, &terms()).map(|change| change.value);
            assert_eq!(read, expected, "{line}");
        }
    }
}
