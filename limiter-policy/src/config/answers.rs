//! The section `answers`: the rates at which answers go to the senders of refused packets.

use limiter_common::{limit::Cost, strategy::Strategy};

use super::{
    node::Node,
    rate::{self, RateContext},
    reader::{Name, Reader},
};
use crate::policy::{AnswerRates, Rate};

const PER_PREFIX: &str = "per-prefix";
const TOTAL: &str = "total";

pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> AnswerRates {
    let mut rates = AnswerRates::default();
    let expected = format!("a map with '{PER_PREFIX}' and '{TOTAL}'");
    let Some(fields) = reader.fields(node, &expected, &[PER_PREFIX, TOTAL]) else {
        return rates;
    };
    for (field, rate) in [
        (PER_PREFIX, &mut rates.per_prefix),
        (TOTAL, &mut rates.total),
    ] {
        let given = fields.find(field);
        let given = given.and_then(|(name, node)| read_rate(reader, name, node));
        *rate = given.unwrap_or(*rate);
    }
    rates
}

fn read_rate<'n>(reader: &mut Reader<'n, '_>, name: Name<'n>, node: &'n Node<'n>) -> Option<Rate> {
    const CONTEXT: RateContext = RateContext {
        cost: Some(Cost::Packets),
        strategy: Some(Strategy::Gcra),
    };
    let fields = reader.fields(node, rate::EXPECTED, &rate::FIELDS)?;
    let rates = rate::read(reader, &fields, name.at, CONTEXT)?;
    if let [rate] = rates[..] {
        return Some(rate);
    }
    let message = format!("'{}' has one rate, not several", name.text);
    reader.error(name.at, message);
    None
}
