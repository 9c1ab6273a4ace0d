//! The section `answers`: the rates at which answers go to the senders of refused packets.

use limiter_common::{limit::Cost, strategy::Strategy};

use super::{
    fields::{Field, Given},
    rate::{self, RateContext},
};
use crate::policy::{AnswerRates, Rate};

pub(super) const FIELDS: [Field<AnswerRates>; 2] = [
    Field::new(
        "per-prefix",
        "the rate to each IPv4 /24 and each IPv6 /48 (`{burst: 100, count: 100, period: 1s}`)",
        |rates, given| read_rate(&mut rates.per_prefix, given),
    ),
    Field::new(
        "total",
        "the rate of each interface (`{burst: 100000, count: 1000000, period: 1s}`)",
        |rates, given| read_rate(&mut rates.total, given),
    ),
];

pub(super) fn read(given: &mut Given<'_, '_, '_>) -> AnswerRates {
    let mut rates = AnswerRates::default();
    given.map("a map with 'per-prefix' and 'total'", &FIELDS, &mut rates);
    rates
}

fn read_rate(rate: &mut Rate, given: &mut Given<'_, '_, '_>) {
    const CONTEXT: RateContext = RateContext {
        cost: Some(Cost::Packets),
        strategy: Some(Strategy::Gcra),
    };
    let fields = (given.reader).fields(given.node, rate::EXPECTED, &rate::FIELDS);
    let position = given.position();
    match fields.and_then(|fields| rate::read(given.reader, &fields, position, CONTEXT)) {
        Some(rates) if let [one] = rates[..] => *rate = one,
        Some(_) => {
            let message = format!("'{}' has one rate, not several", given.name.text);
            given.reader.error(given.name.at, message);
        }
        None => {}
    }
}
