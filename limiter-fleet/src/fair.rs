//! Max-min fairness: how to divide a budget that is too small for all demands.

/// Max-min fair allocation: no share exceeds its demand, and a share below its demand is no smaller than
/// any other. Returns the shares in the order of `wants`.
pub(crate) fn divide(available: u64, wants: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|index| wants[*index]);
    let mut given = vec![0; wants.len()];
    let mut rest = available;
    for (position, index) in order.iter().enumerate() {
        let others = (wants.len() - position) as u64;
        given[*index] = wants[*index].min(rest / others);
        rest -= given[*index];
    }
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn those_who_want_little_get_it() {
        assert_eq!(divide(100, &[10, 200, 20, 300]), [10, 35, 20, 35]);
        assert_eq!(divide(100, &[10, 20]), [10, 20]);
        assert_eq!(divide(100, &[]), Vec::<u64>::new());
        assert_eq!(divide(0, &[1]), [0]);
    }

    proptest! {
        #[test]
        fn no_more_than_there_is_is_given(available: u64, wants in prop::collection::vec(any::<u64>(), 0..20)) {
            let given = divide(available, &wants);
            let all: u128 = given.iter().map(|one| u128::from(*one)).sum();
            prop_assert!(all <= u128::from(available));
            let wanted: u128 = wants.iter().map(|one| u128::from(*one)).sum();
            // Only the indivisible remainder is left over.
            let left = wanted.min(u128::from(available)) - all;
            prop_assert!(left < wants.len().max(1) as u128);
            for (one, wanted) in given.iter().zip(&wants) {
                prop_assert!(one <= wanted);
            }
        }
    }
}
