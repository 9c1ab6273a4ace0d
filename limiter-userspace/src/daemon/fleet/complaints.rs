//! Complaints: what the log has said is wrong.

/// The most reasons that the log says until all is well again: some name ports and numbers.
const MOST: usize = 8;

/// Why the store is not there, as the log has said since it was.
#[derive(Default)]
pub(super) struct Complaints(Vec<String>);

impl Complaints {
    /// Returns whether the log is to say that: each reason once.
    pub(super) fn is_new(&mut self, why: &str) -> bool {
        let is_new = self.0.len() < MOST && !self.0.iter().any(|said| said == why);
        if is_new {
            self.0.push(why.to_owned());
        }
        is_new
    }

    /// All is well.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_said_once() {
        let mut complaints = Complaints::default();
        let new = ["gone", "denied", "gone", "denied"].map(|why| complaints.is_new(why));
        assert_eq!(new, [true, true, false, false]);
        let said = (0..100).filter(|number| complaints.is_new(&number.to_string()));
        assert_eq!(said.count(), MOST - 2);
        complaints.clear();
        assert!(complaints.is_new("gone"));
    }
}
