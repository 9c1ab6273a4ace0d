//! Interning: each unit of bucket states gets a number and keeps it.

use std::collections::{BTreeMap, HashMap, HashSet};

use limiter_common::{
    bucket::Bucket,
    limit::Cost,
    ratio::Ratio,
    strategy::{Layout, gcra::MAX_BURST_OFFSET},
    unit::{MAX_UNITS, MAX_UNITS_OF_KIND, ODD_UNIT, Unit, UnitTable},
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Every interned unit, including units that no limit uses any more: buckets may still use them.
///
/// Pass it from one policy to the next as long as the buckets stay. It can be stored with them, as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<KeptUnit>", into = "Vec<KeptUnit>")]
pub struct Units(BTreeMap<u32, InternedUnit>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InternedUnit {
    unit: Unit,
    /// Whether the policy interned last uses it.
    current: bool,
}

/// There are more units than numbers.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the limits and their overrides have too many different rates: the maximum is \
     {MAX_UNITS_OF_KIND}, including those of the previous policy; give some the same count and \
     period"
)]
pub struct TooManyUnits;

impl Units {
    /// Returns these units with `current`, the units of one policy, and the numbers of `current`.
    ///
    /// When no number is free, units that are neither current nor of the previous policy lose theirs. Buckets
    /// may still use such a unit: see [`Self::taken_over_from`].
    ///
    /// # Errors
    ///
    /// `current` and the previous policy have too many units.
    pub fn intern(&self, current: &[Unit]) -> Result<(Self, Vec<u32>), TooManyUnits> {
        let mut known: HashMap<Unit, u32> =
            self.iter().map(|(number, unit)| (unit, number)).collect();
        let wanted: HashSet<Unit> = current.iter().copied().collect();
        let mut units = self.clone();
        for known in units.0.values_mut() {
            known.current = wanted.contains(&known.unit);
        }
        let mut even = self.spare(0, &wanted);
        let mut odd = self.spare(ODD_UNIT, &wanted);
        let mut numbers = Vec::with_capacity(current.len());
        for unit in current {
            if let Some(number) = known.get(unit) {
                numbers.push(*number);
                continue;
            }
            let spare = if unit.is_odd() {
                odd.next()
            } else {
                even.next()
            };
            let number = spare.ok_or(TooManyUnits)?;
            known.insert(*unit, number);
            let new = InternedUnit {
                unit: *unit,
                current: true,
            };
            units.0.insert(number, new);
            numbers.push(number);
        }
        Ok((units, numbers))
    }

    /// Returns the assignable numbers of a kind: the free ones, lowest first, then the numbers of units that
    /// may lose theirs.
    fn spare(&self, first: u32, wanted: &HashSet<Unit>) -> impl Iterator<Item = u32> {
        let of_kind = first..first + MAX_UNITS_OF_KIND;
        let free = of_kind
            .clone()
            .filter(|number| !self.0.contains_key(number));
        let given_up = self
            .0
            .range(of_kind)
            .filter(|(_, known)| !known.current && !wanted.contains(&known.unit))
            .map(|(number, _)| *number);
        free.chain(given_up)
    }

    /// Returns the numbers that had another unit in `before`. States in the previous unit must be gone before
    /// such a number is used: they would be read in the wrong unit.
    pub fn taken_over_from<'u>(&'u self, before: &'u Self) -> impl Iterator<Item = u32> + 'u {
        let numbers = self.iter();
        let taken = numbers.filter(|(number, unit)| {
            let had = before.unit(*number);
            had.is_some_and(|had| had != unit)
        });
        taken.map(|(number, _)| number)
    }

    /// Updates the units to match the numbers in the kernel, `in_kernel`. The kernel may have more, since
    /// another policy may have been in force and reverted. Also returns the kernel's unusable numbers, with
    /// invalid or duplicate units.
    #[must_use]
    pub fn as_in_kernel(&self, in_kernel: &BTreeMap<u32, Unit>) -> (Self, Vec<u32>) {
        let mut units = self.clone();
        units.0.retain(|number, known| {
            let now = in_kernel.get(number);
            now.is_none_or(|now| *now == known.unit)
        });
        let mut known: HashSet<_> = units.iter().map(|(_, unit)| unit).collect();
        let mut of_no_use = Vec::new();
        for (number, unit) in in_kernel {
            if units.0.contains_key(number) {
                continue;
            }
            if is_unit(*number, unit) && known.insert(*unit) {
                let unit = *unit;
                let current = false;
                units.0.insert(*number, InternedUnit { unit, current });
            } else {
                of_no_use.push(*number);
            }
        }
        (units, of_no_use)
    }

    /// Returns a bucket's state at the time `now_ns` in the unit with this number, converted if necessary.
    #[must_use]
    pub fn state(&self, bucket: Bucket, unit: u32, now_ns: u64) -> u64 {
        if bucket.unit == unit {
            bucket.state
        } else {
            self.exchange(bucket.unit, unit, now_ns, bucket.state)
        }
    }

    /// Returns every unit with its number, sorted by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Unit)> {
        self.0.iter().map(|(number, known)| (*number, known.unit))
    }

    /// Returns whether any unit is not a TAT in nanoseconds.
    #[must_use]
    pub fn have_odd_units(&self) -> bool {
        self.0.range(ODD_UNIT..).next().is_some()
    }
}

impl UnitTable for Units {
    fn unit(&self, number: u32) -> Option<&Unit> {
        self.0.get(&number).map(|known| &known.unit)
    }
}

/// Returns whether a limit may use this unit under this number.
fn is_unit(number: u32, unit: &Unit) -> bool {
    (1..=MAX_BURST_OFFSET).contains(&unit.interval)
        && unit.cost <= Cost::NewNames as u32
        && number < MAX_UNITS
        && unit.is_odd() == (number & ODD_UNIT != 0)
}

/// A unit as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptUnit {
    number: u32,
    #[serde(rename = "emission_interval")]
    interval: u64,
    /// The whole part, and the fraction in 2^-64.
    ticks_per_ns: [u64; 2],
    ns_per_tick: [u64; 2],
    cost: u32,
    current: bool,
    /// As in [`Layout::parts`].
    layout: [u8; 4],
}

impl From<Units> for Vec<KeptUnit> {
    fn from(units: Units) -> Self {
        let entries = units.0.into_iter().map(|(number, known)| KeptUnit {
            number,
            interval: known.unit.interval,
            ticks_per_ns: known.unit.ticks_per_ns.parts(),
            ns_per_tick: known.unit.ns_per_tick.parts(),
            cost: known.unit.cost,
            current: known.current,
            layout: known.unit.layout.parts(),
        });
        entries.collect()
    }
}

/// A stored list of units is invalid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("unit {0} is invalid or a duplicate")]
pub struct NoSuchUnit(u32);

impl TryFrom<Vec<KeptUnit>> for Units {
    type Error = NoSuchUnit;

    fn try_from(entries: Vec<KeptUnit>) -> Result<Self, NoSuchUnit> {
        let mut units = Self::default();
        let mut known = HashSet::new();
        for entry in entries {
            let number = entry.number;
            let layout = Layout::from_parts(entry.layout).ok_or(NoSuchUnit(number))?;
            let unit = Unit {
                interval: entry.interval,
                ticks_per_ns: Ratio::from_parts(entry.ticks_per_ns),
                ns_per_tick: Ratio::from_parts(entry.ns_per_tick),
                cost: entry.cost,
                layout,
            };
            let kept = InternedUnit {
                unit,
                current: entry.current,
            };
            let is_unit = is_unit(number, &unit);
            if !is_unit || !known.insert(unit) || units.0.insert(entry.number, kept).is_some() {
                return Err(NoSuchUnit(entry.number));
            }
        }
        Ok(units)
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::strategy::{Parameters, Strategy, gcra::Gcra};

    use super::*;

    /// Returns the unit of one token in `interval` nanoseconds.
    fn even(interval: u32) -> Unit {
        let gcra = Gcra::new(1, 1, interval.into()).unwrap();
        Unit::new(&Parameters::of_gcra(gcra), Cost::Packets)
    }

    /// Returns the unit of `count` tokens in `count + 1` nanoseconds, which has ticks of its own.
    fn odd(count: u32) -> Unit {
        let gcra = Gcra::new(1, count.into(), u64::from(count) + 1).unwrap();
        Unit::new(&Parameters::of_gcra(gcra), Cost::Packets)
    }

    #[test]
    fn a_unit_keeps_its_number_in_any_order_and_company() {
        let (first, numbers) = Units::default()
            .intern(&[even(5), odd(3), even(7)])
            .unwrap();
        assert_eq!(numbers, [0, ODD_UNIT, 1]);
        assert!(first.have_odd_units());
        let (second, numbers) = first.intern(&[even(7), even(9), even(9), odd(3)]).unwrap();
        assert_eq!(numbers, [1, 2, 2, ODD_UNIT]);
        // A unit that was gone for a while.
        let (third, numbers) = second.intern(&[even(5), odd(4)]).unwrap();
        assert_eq!(numbers, [0, ODD_UNIT + 1]);
        assert_eq!(third.unit(2), Some(&even(9)));
        assert_eq!(third.unit(3), None);
    }

    #[test]
    fn what_a_token_is_makes_another_unit() {
        let gcra = Gcra::new(1, 1, 5).unwrap();
        let units = Cost::ALL.map(|cost| Unit::new(&Parameters::of_gcra(gcra), cost));
        let (_, numbers) = Units::default().intern(&units).unwrap();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        // The burst makes no difference.
        let larger = Gcra::new(9, 1, 5).unwrap();
        assert_eq!(
            Unit::new(&Parameters::of_gcra(larger), Cost::Bytes),
            units[1]
        );
    }

    #[test]
    fn only_units_of_policies_long_gone_give_up_their_numbers() {
        let numbered = |range: std::ops::Range<u32>| range.map(even).collect::<Vec<_>>();
        let last = MAX_UNITS_OF_KIND;
        let too_many = numbered(1..last + 2);
        assert_eq!(Units::default().intern(&too_many), Err(TooManyUnits));
        let (full, numbers) = Units::default().intern(&numbered(1..last + 1)).unwrap();
        assert_eq!(numbers.last(), Some(&(last - 1)));
        // All others belong to the previous policy.
        assert_eq!(full.intern(&[even(last + 1)]), Err(TooManyUnits));
        let (_, numbers) = full.intern(&[odd(3)]).unwrap();
        assert_eq!(numbers, [ODD_UNIT], "the kinds have numbers of their own");

        let (next, _) = full.intern(&numbered(2..last)).unwrap();
        let (next, numbers) = next.intern(&[even(1), even(last + 1)]).unwrap();
        assert_eq!(numbers, [0, last - 1]);
        assert_eq!(next.unit(last - 1), Some(&even(last + 1)));
        assert_eq!(next.unit(1), Some(&even(2)));
        let taken: Vec<_> = next.taken_over_from(&full).collect();
        assert_eq!(taken, [last - 1]);
        assert_eq!(next.taken_over_from(&next).count(), 0);
    }

    #[test]
    fn the_kernel_knows_what_numbers_mean() {
        let (before, _) = Units::default().intern(&[even(5), odd(3)]).unwrap();
        let (before, _) = before.intern(&[even(6)]).unwrap();
        let all: BTreeMap<_, _> = before.iter().collect();
        assert_eq!(before.as_in_kernel(&all), (before.clone(), Vec::new()));

        // A later policy had one unit more, and replaced another.
        let mut later = all.clone();
        later.insert(0, even(8));
        later.insert(7, even(7));
        let (found, of_no_use) = before.as_in_kernel(&later);
        assert_eq!(found.iter().collect::<BTreeMap<_, _>>(), later);
        assert!(of_no_use.is_empty());
        // Current units stay current.
        let (next, _) = found.intern(&[even(9)]).unwrap();
        assert_eq!(next.unit(1), Some(&even(6)));

        // A duplicate, and a number of the other kind.
        later.insert(8, even(7));
        later.insert(9, odd(9));
        let (found, of_no_use) = before.as_in_kernel(&later);
        assert_eq!(of_no_use, [8, 9]);
        let kept = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Units>(&kept).unwrap(), found);
    }

    fn window() -> Unit {
        let parameters = Parameters::new(Strategy::SlidingWindowCounter, 0, 10, 100).unwrap();
        Unit::new(&parameters, Cost::Packets)
    }

    #[test]
    fn are_kept_as_a_list() {
        let first = [even(5), odd(3), window(), Unit::of_stamps(Cost::Packets)];
        let (units, _) = Units::default().intern(&first).unwrap();
        let (units, _) = units.intern(&[even(6)]).unwrap();
        let kept = serde_json::to_string(&units).unwrap();
        let read: Units = serde_json::from_str(&kept).unwrap();
        assert_eq!(read, units);

        let refused = |from: &str, to: &str| {
            assert!(kept.contains(from), "{kept}");
            let error = serde_json::from_str::<Units>(&kept.replace(from, to)).unwrap_err();
            assert!(
                error.to_string().contains("is invalid or a duplicate"),
                "{error}"
            );
        };
        refused("\"number\":1,", "\"number\":0,");
        refused("\"number\":1,", "\"number\":32770,");
        refused("\"number\":32768", "\"number\":65536");
        refused("\"emission_interval\":6", "\"emission_interval\":5");
        refused("\"emission_interval\":6", "\"emission_interval\":0");
        refused("\"cost\":0", &format!("\"cost\":{}", Cost::ALL.len()));
    }
}
