//! A change of bans, above the table.

use limiter_policy::text::short;
use limiter_protocol::bans::BanStatus;
use limiter_report::render::{duration, hits};
use ratatui::{
    style::Style,
    text::{Line, Span},
};

use super::{
    super::{
        change::{BanForm, Field, PendingChange, UnbanForm},
        model::Page,
    },
    palette::Palette,
};

/// The keys that confirm and refuse a change.
const KEYS_OF_BAN: &str = "Enter: do it  Tab: the other text  Esc: change nothing";
const KEYS_OF_UNBAN: &str = "Enter: do it  Esc: change nothing";

/// Returns the lines above the table; empty without a requested change.
pub(super) fn lines(page: &Page, width: u16, palette: &Palette) -> Vec<Line<'static>> {
    let width = usize::from(width);
    match page {
        Page::Confirmation(asked) => asked_lines(asked, width, palette),
        Page::Changing(wanted) => {
            let mut lines = styled(&wanted.to_string(), width, palette.alarm);
            lines.push(Line::raw("asking the daemon …"));
            lines
        }
        Page::Outcome(outcome) => {
            let mut lines = match outcome {
                Ok(done) => styled(done, width, palette.heading),
                Err(refused) => styled(refused, width, palette.alarm),
            };
            lines.push(Line::styled("Esc: back to the table", palette.aside));
            lines
        }
        Page::Table | Page::Filter | Page::Help | Page::Explanation { .. } => Vec::new(),
    }
}

fn asked_lines(asked: &PendingChange, width: usize, palette: &Palette) -> Vec<Line<'static>> {
    let wanted = asked.wanted();
    let mut lines = match &wanted {
        Ok(wanted) => styled(&wanted.to_string(), width, palette.alarm),
        Err(why) => styled(why, width, palette.alarm),
    };
    let keys = match asked {
        PendingChange::Ban(ban) => {
            lines.extend(fields(ban, palette));
            KEYS_OF_BAN
        }
        PendingChange::Unban(unban) => {
            let bans = unban.bans.iter().flatten();
            lines.extend(bans.map(|ban| ban_line(unban, ban, palette)));
            KEYS_OF_UNBAN
        }
    };
    let keys = if wanted.is_ok() {
        keys
    } else {
        "Esc: change nothing"
    };
    lines.push(Line::styled(keys, palette.aside));
    lines
}

fn fields(ban: &BanForm, palette: &Palette) -> [Line<'static>; 2] {
    let line = |name: &str, text: &str, field| {
        let cursor = if ban.field == field { "▏" } else { "" };
        Line::from(vec![
            Span::styled(format!("{name:<8}"), palette.aside),
            Span::raw(format!("{text}{cursor}")),
        ])
    };
    [
        line("for", &ban.length, Field::Length),
        line("reason", &ban.reason, Field::Reason),
    ]
}

fn ban_line(unban: &UnbanForm, ban: &BanStatus, palette: &Palette) -> Line<'static> {
    let ends = ban.ends_in_ns.map_or_else(
        || "until it is lifted".to_owned(),
        |ns| format!("for {} more", duration(ns)),
    );
    let (prefix, by, reason) = (short(ban.prefix), ban.by(), &ban.reason);
    if ban.prefix == unban.prefix {
        let hits = hits(ban.hits);
        Line::styled(
            format!("{prefix} by {by} {ends}, {hits}  {reason}"),
            palette.aside,
        )
    } else {
        Line::styled(
            format!("{prefix} by {by} {ends} STAYS BANNED"),
            palette.alarm,
        )
    }
}

fn styled(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    let lines = text.lines().flat_map(|line| wrapped(line, width));
    lines.map(|line| Line::styled(line, style)).collect()
}

/// Breaks a line at spaces, so that no part is wider than `width` unless a word is.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for word in line.split(' ') {
        let length = |text: &str| text.chars().count();
        match parts.last_mut() {
            Some(part) if part.is_empty() => part.push_str(word),
            Some(part) if length(part) + 1 + length(word) <= width => {
                part.extend([" ", word]);
            }
            _ => parts.push(word.to_owned()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrapped("", 9), [""]);
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two", 2), ["one", "two"]);
        assert_eq!(wrapped("ä ö ü", 3), ["ä ö", "ü"]);
    }
}
