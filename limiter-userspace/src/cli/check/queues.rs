//! The queues of limits on connections, in `limiter check`.

use std::io::Write;

use limiter_policy::policy::{Limit, Policy};

use limiter_report::render::{count, duration};

/// Prints a line for each limit with a queue.
pub(super) fn print(out: &mut impl Write, policy: &Policy) -> anyhow::Result<()> {
    for line in policy.limits.iter().filter_map(line) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn line(limit: &Limit) -> Option<String> {
    let (name, queue) = (&limit.name, limit.queue?);
    let most = count(queue.size);
    let age = match queue.max_age_ns {
        0 => String::new(),
        ns => format!(", each for {} at most", duration(ns)),
    };
    Some(format!(
        "{name}: at most {most} wait in line for a key's connections{age}"
    ))
}

#[cfg(test)]
mod tests {
    use limiter_policy::config;

    use super::*;

    #[test]
    fn only_limits_with_a_queue_have_a_line() {
        let text = "limits: {Web: {id: total, cost: connections, limit: 5, queue: {max-age: 30s}}, \
                    Short: {id: total, cost: connections, limit: 5, queue: {size: 2, max-age: 0}}, \
                    Other: {id: total, cost: connections, limit: 5}}";
        let policy = config::parse(text, "test").unwrap().policy;
        let mut shown = Vec::new();
        print(&mut shown, &policy).unwrap();
        assert_eq!(
            String::from_utf8(shown).unwrap(),
            "Short: at most 2 wait in line for a key's connections\n\
             Web: at most 1 000 wait in line for a key's connections, each for 30 s at most\n"
        );
    }
}
