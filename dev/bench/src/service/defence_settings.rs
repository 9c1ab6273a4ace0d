//! The limiter's configurations, for each service.

use testbed::SERVER_INTERFACE;

use super::{flood::Flood, server::Service};

/// The configuration of one of the limiter's defences.
#[derive(Clone, Copy, Debug)]
pub(super) struct DefenceSettings {
    dns: &'static str,
    web: &'static str,
    /// Whether the daemon finds the rates of limits that have a reserve.
    pub(super) is_automatic: bool,
    /// Whether these limits get answers.
    gains_answers: bool,
}

/// The packaged configurations.
pub(super) const PACKAGED: DefenceSettings = DefenceSettings {
    dns: include_str!("../../../../configs/dns-server.yaml"),
    web: include_str!("../../../../configs/web-server.yaml"),
    is_automatic: false,
    gains_answers: false,
};

/// Configurations for rates that these servers sustain on one CPU.
pub(super) const MEASURED: DefenceSettings = DefenceSettings {
    dns: include_str!("../../configs/known-dns.yaml"),
    web: include_str!("../../configs/known-web.yaml"),
    is_automatic: false,
    gains_answers: false,
};

/// The same, with an answer for new clients.
pub(super) const ANSWERING: DefenceSettings = DefenceSettings {
    gains_answers: true,
    ..MEASURED
};

/// The same, with automatic rates.
pub(super) const AUTOMATIC: DefenceSettings = DefenceSettings {
    is_automatic: true,
    ..MEASURED
};

/// The rates of the limits that have a reserve, and the bounds of automatic rates. At the lower
/// bounds there is room for all known clients, and for little else: in the largest floods,
/// receiving leaves the server 1 to 3 % of its CPU.
const BOUNDS: [(&str, &str); 3] = [
    (
        "burst: 4000\n    count: 20000\n    period: 1s",
        "count: auto\n    floor: 2000\n    ceiling: 200000",
    ),
    (
        "burst: 2000\n    count: 4000\n    period: 1s",
        "count: auto\n    floor: 2000\n    ceiling: 200000",
    ),
    (
        "burst: 5000\n    count: 40000\n    period: 1s",
        "count: auto\n    floor: 20000\n    ceiling: 200000",
    ),
];

/// The limits' reserve for known clients.
const RESERVE: &str = "    reserve: {familiar: 10%, fresh: 20%, retried: 30%, unknown: 50%}\n";

/// The beginning of a limit's answers.
const DENY: &str = "\n    deny: ";

/// The interface in the repository's configurations.
const INTERFACES: &str = "interfaces: [eth0]";

/// The section that sets the interval between visits. Here clients visit within seconds.
const STANDING: &str = "\nstanding:\n";
const VISITS: &str = "  visits: {count: 3, apart: 2s}\n";

/// For clients that visited a minute before the flood.
const FRESH_FOR: &str = "  fresh-for: 1m\n";

impl DefenceSettings {
    /// Returns the configuration in the form that users write.
    pub(super) fn text(&self, service: Service) -> String {
        let text = match service {
            Service::Dns => self.dns,
            Service::Web => self.web,
        };
        if self.gains_answers {
            let answer = match service {
                Service::Dns => "truncate",
                Service::Web => "syn-cookie",
            };
            return text.replace(RESERVE, &format!("{}{DENY}{answer}\n", RESERVE.trim_end()));
        }
        if !self.is_automatic {
            return text.to_owned();
        }
        let automatic =
            |text: String, (numbers, bounds): (&str, &str)| text.replace(numbers, bounds);
        BOUNDS.into_iter().fold(text.to_owned(), automatic)
    }

    /// Returns whether a limit answers refused packets.
    pub(super) fn answers(&self, service: Service) -> bool {
        self.text(service).contains(DENY)
    }

    /// Returns the configuration for this interface, and for clients that visit within seconds, a
    /// minute before the flood.
    pub(super) fn here(&self, flood: &Flood) -> String {
        let here = format!("interfaces: [{SERVER_INTERFACE}]");
        let text = self.text(flood.service).replace(INTERFACES, &here);
        let fresh_for = if flood.by_visits { FRESH_FOR } else { "" };
        let standing = format!("{STANDING}{VISITS}{fresh_for}");
        if text.contains(STANDING) {
            text.replace(STANDING, &standing)
        } else {
            text + &standing
        }
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::address::Family;
    use limiter_policy::config;

    use super::{super::flood::FLOODS, *};

    #[test]
    fn configurations_are_for_this_interface_these_visits_and_these_rates() {
        for configured in [PACKAGED, MEASURED, ANSWERING, AUTOMATIC] {
            for flood in FLOODS {
                let text = configured.here(&flood);
                let read = config::parse(&text, "bench");
                let read = read.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
                assert!(text.contains("interfaces: [server0]"));
                let is_silent = !configured.gains_answers && configured.dns == MEASURED.dns;
                assert_eq!(configured.answers(flood.service), !is_silent, "{text}");
                assert_eq!(text.matches(VISITS).count(), 1);
                let fresh_for = text.matches(FRESH_FOR).count();
                assert_eq!(fresh_for, usize::from(flood.by_visits));
                for family in [Family::V4, Family::V6] {
                    assert_eq!(read.policy.taken_by_few(family).count(), 0, "{text}");
                }
                let limits = read.policy.limits.iter();
                let reserving: Vec<_> = limits.filter(|limit| limit.reserve.is_some()).collect();
                assert!(!reserving.is_empty(), "everybody is equal:\n{text}");
                for limit in reserving {
                    let is_automatic = limit.automatic().is_some();
                    assert_eq!(is_automatic, configured.is_automatic, "{text}");
                    let answers = configured.answers(flood.service);
                    assert_eq!(limit.deny.is_some(), answers, "{text}");
                }
            }
        }
    }
}
