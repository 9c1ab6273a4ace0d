//! Explains a wrong indentation. The YAML parser reports only that a line is wrong.

/// Explains the indentation error in a line (counted from 1); `None`: this line and the lines above do not
/// show the cause.
pub(super) fn hint(text: &str, number: u64) -> Option<String> {
    let count = usize::try_from(number).ok()?;
    let lines = text.lines().take(count).enumerate();
    let lines: Vec<Line<'_>> = lines
        .map(|(index, text)| Line::of(index + 1, text))
        .collect();
    let (line, above) = lines.split_last()?;
    if line.has_tab() {
        return Some(format!(
            "line {number} is indented with a tab: use spaces, which count the same everywhere"
        ));
    }
    if line.is_empty() {
        return None;
    }
    let mut above = above.iter().rev().filter(|line| !line.is_empty());
    let previous = above.next()?;
    let blanks = line.blanks;
    if blanks > previous.blanks {
        // A line may be indented further below `name:` and `- name: value`.
        let is_open = previous.content.ends_with(':') || previous.content.starts_with("- ");
        return (!is_open && previous.is_entry()).then(|| {
            format!(
                "line {number} is indented more than line {}, which has its value already: indent \
                 both alike",
                previous.number
            )
        });
    }
    // The indentations of the maps and lists still open at this line.
    let mut open = vec![previous.blanks];
    for line in above {
        if open.last().is_some_and(|last| line.blanks < *last) {
            open.push(line.blanks);
        }
    }
    if blanks < previous.blanks && !open.contains(&blanks) {
        open.reverse();
        let open: Vec<_> = open.iter().map(ToString::to_string).collect();
        return Some(format!(
            "line {number} is indented by {blanks}, less than line {}, but like no line above it \
             ({}): indent it like the lines that it belongs to",
            previous.number,
            open.join(", ")
        ));
    }
    None
}

struct Line<'t> {
    number: usize,
    /// The number of leading blanks.
    blanks: usize,
    /// The text after the blanks, without a comment.
    content: &'t str,
}

impl<'t> Line<'t> {
    fn of(number: usize, text: &'t str) -> Self {
        let content = text.trim_start_matches(' ');
        let blanks = text.len() - content.len();
        let content = content.split(" #").next().unwrap_or_default().trim_end();
        Self {
            number,
            blanks,
            content,
        }
    }

    fn has_tab(&self) -> bool {
        self.content.starts_with('\t')
    }

    fn is_empty(&self) -> bool {
        self.content.is_empty() || self.content.starts_with('#')
    }

    /// Returns whether the line is a name with a value.
    fn is_entry(&self) -> bool {
        self.content.contains(": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, number: u64, expected: Option<&str>) {
        assert_eq!(hint(text, number).as_deref(), expected, "{text}");
    }

    #[test]
    fn a_line_between_two_levels() {
        check(
            "limits:\n  A:\n    id: ipAddress\n   cost: packets\n",
            4,
            Some(
                "line 4 is indented by 3, less than line 3, but like no line above it (0, 2, 4): \
                 indent it like the lines that it belongs to",
            ),
        );
        // Comments and empty lines do not count.
        let text = "limits:\n  A:\n    id: ipAddress\n\n # a\n  B: 1\n";
        check(text, 6, None);
    }

    #[test]
    fn a_line_below_a_value() {
        check(
            "A:\n  rate: 1/s # one\n    burst: 10\n",
            3,
            Some(
                "line 3 is indented more than line 2, which has its value already: indent both \
                 alike",
            ),
        );
        check("A:\n  - name: a\n    cidr: b\n", 3, None);
        check("A:\n  rate:\n    burst: 10\n", 3, None);
    }

    #[test]
    fn tabs() {
        check(
            "A:\n\tb: 1",
            2,
            Some("line 2 is indented with a tab: use spaces, which count the same everywhere"),
        );
    }

    #[test]
    fn nothing_to_tell() {
        for (text, number) in [("", 1), ("a: [", 1), ("a: 1\nb: 2", 2), ("a", 7), ("a", 0)] {
            check(text, number, None);
        }
    }
}
