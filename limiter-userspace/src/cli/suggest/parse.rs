//! Parses the options.

use std::time::Duration;

use limiter_policy::config::duration;

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const FROM: Duration = Duration::from_secs(1);
    const TO: Duration = Duration::from_hours(24 * 30);
    let ns = duration::parse(text).map_err(|error| error.to_string())?;
    let duration = Duration::from_nanos(ns);
    if (FROM..=TO).contains(&duration) {
        Ok(duration)
    } else {
        Err("must be from 1s to 30d".to_owned())
    }
}

pub(super) fn pass(text: &str) -> Result<f64, String> {
    within(text.strip_suffix('%').unwrap_or(text), 50.0, 100.0)
        .ok_or_else(|| "expected a percentage from 50 to 100, such as 99.9".to_owned())
}

pub(super) fn headroom(text: &str) -> Result<f64, String> {
    within(text, 1.0, 100.0)
        .ok_or_else(|| "expected a factor from 1 to 100, such as 1.5".to_owned())
}

fn within(text: &str, from: f64, to: f64) -> Option<f64> {
    let number = text.trim().parse().ok();
    number.filter(|number| (from..=to).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert_eq!(duration("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(duration("1d"), Ok(Duration::from_hours(24)));
        assert_eq!(pass("99.9%"), Ok(99.9));
        assert_eq!(pass("100"), Ok(100.0));
        assert_eq!(headroom("1"), Ok(1.0));
        for text in ["", "0s", "999ms", "31d", "-1"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "49", "100.1", "NaN", "inf", "1/2"] {
            assert!(pass(text).is_err(), "{text}");
            assert!(text == "49" || headroom(text).is_err(), "{text}");
        }
    }
}
