//! Boulder's worked example, corrected, on packets: 20 per second, burst 20.

use anyhow::Result;
use limiter_common::{
    address::Address,
    key::BucketKey,
    limit::BUILT_IN,
    reason::Reason::{self, OverLimit, WithinLimits},
    strategy::{Level, moving_window::Log},
};
use limiter_policy::policy::{Limit, Rate};
use testbed::Frame;

use crate::engine::{Engines, START, policy};

const MS: u64 = 1_000_000;

#[test]
fn twenty_per_second() -> Result<()> {
    let built_in = BUILT_IN[0];
    let rate = Rate {
        burst: 20,
        count: 20,
        period_ns: 1_000 * MS,
    };
    let mut engines = Engines::new(&policy([Limit::of_built_in(&built_in, Some(rate))]))?;
    let frame = Frame::new("172.23.45.22".parse()?, "10.0.0.1".parse()?).udp(1, 2, b"newFoo")?;
    let mut check = |at_ms: u64, reason: Reason, remaining, retry_in_ms, reset_in_ms| {
        assert_eq!(engines.judge(at_ms * MS, &frame), reason, "at {at_ms} ms");
        let key = BucketKey::of_source(built_in.id, Address::v4([172, 23, 45, 22]), 32);
        let tat = engines.maps().bucket(&key).expect("a readable map");
        let tat = tat.map(|bucket| bucket.state);
        let parameters = engines.tables().rates[0];
        let expected = Level {
            remaining,
            retry_in_ns: retry_in_ms * MS,
            reset_in_ns: reset_in_ms * MS,
        };
        assert_eq!(
            parameters.level(START + at_ms * MS, tat, &Log::EMPTY),
            expected,
            "at {at_ms} ms"
        );
    };
    check(0, WithinLimits, 19, 0, 50);
    check(5, WithinLimits, 18, 0, 95);
    // 18 more over the next 44 ms: all pass.
    for request in 0..18 {
        let at = 5 + request * 44 / 17;
        let spent = (request + 3) * 50 - at;
        let remaining = (1_000 - spent) / 50;
        let retry_in = if remaining == 0 {
            spent + 50 - 1_000
        } else {
            0
        };
        check(at, WithinLimits, remaining, retry_in, spent);
    }
    check(49, OverLimit, 0, 1, 951);
    check(50, WithinLimits, 0, 50, 1_000);
    check(99, OverLimit, 0, 1, 951);
    // A denied packet charged nothing.
    check(100, WithinLimits, 0, 50, 1_000);
    check(1_100, WithinLimits, 19, 0, 50);
    engines.assert_same_state();
    Ok(())
}
