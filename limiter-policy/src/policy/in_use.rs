//! The sections of a policy that its limits use.

use super::{AnswerRates, Limit, Mode, Policy, PressureOf, SieveUse, StandingSettings};

impl Policy {
    /// Returns the rates of answers; `None`: no limit answers.
    #[must_use]
    pub fn answers_in_use(&self) -> Option<AnswerRates> {
        let mut limits = self.limits.iter();
        let answers = limits.any(|limit| limit.answers().is_some());
        answers.then(|| self.answers.unwrap_or_default())
    }

    /// Returns whether any limit answers with SYN cookies.
    #[must_use]
    pub fn makes_syn_cookies(&self) -> bool {
        self.limits.iter().any(Limit::makes_syn_cookies)
    }

    /// Returns whether any limit needs to know the standing of sources.
    #[must_use]
    pub fn uses_standing(&self) -> bool {
        self.limits.iter().any(Limit::uses_standing)
    }

    /// Returns the rules for standing; `None`: no limit uses it.
    #[must_use]
    pub fn standing_in_use(&self) -> Option<StandingSettings> {
        let settings = || self.standing.clone().unwrap_or_default();
        self.uses_standing().then(settings)
    }

    /// Returns every use of a sieve that is on: by limits, sorted by interned id, then by the whole
    /// interface, in the order of the sieves. Limits that are off use none.
    #[must_use]
    pub fn sieve_uses(&self) -> Vec<SieveUse> {
        let on = |wanted: &str| {
            let number = self.sieves.iter().position(|sieve| sieve.name == wanted);
            number.filter(|number| self.sieves[*number].is_on())
        };
        let measured_for_a_sieve = |name: &str| {
            self.sieves.iter().any(|sieve| {
                matches!(&sieve.pressure, Some(PressureOf::Limit(limit)) if limit == name)
                    && sieve.is_on()
            })
        };
        let used = |limit: &&Limit| limit.mode != Mode::Off;
        let by_limits = self.limits.iter().filter(used).filter_map(|limit| {
            let sieve = limit.ip_rep.as_deref().and_then(on);
            (sieve.is_some() || measured_for_a_sieve(&limit.name)).then_some(SieveUse {
                limit: Some(limit.id),
                sieve,
            })
        });
        let everywhere = (0..).zip(&self.sieves).filter_map(|(number, sieve)| {
            let named = |limit: &Limit| limit.ip_rep.as_deref() == Some(&sieve.name);
            let unnamed = !self.limits.iter().any(named);
            (sieve.is_on() && sieve.pressure.is_some() && unnamed).then_some(SieveUse {
                limit: None,
                sieve: Some(number),
            })
        });
        by_limits.chain(everywhere).collect()
    }
}
