//! The problems that the log already has, to log each only once.

/// The most reasons logged until the store works again: some reasons contain ports and numbers.
const MOST: usize = 8;

/// The reasons logged since the store last worked.
#[derive(Default)]
pub(super) struct Warnings(Vec<String>);

impl Warnings {
    /// Returns whether the log lacks this reason, and remembers it.
    pub(super) fn is_new(&mut self, why: &str) -> bool {
        let is_new = self.0.len() < MOST && !self.0.iter().any(|logged| logged == why);
        if is_new {
            self.0.push(why.to_owned());
        }
        is_new
    }

    /// Forgets all reasons, as the store works.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_logged_once() {
        let mut warnings = Warnings::default();
        let new = ["gone", "denied", "gone", "denied"].map(|why| warnings.is_new(why));
        assert_eq!(new, [true, true, false, false]);
        let logged = (0..100).filter(|number| warnings.is_new(&number.to_string()));
        assert_eq!(logged.count(), MOST - 2);
        warnings.clear();
        assert!(warnings.is_new("gone"));
    }
}
