//! Reading feed files: anew, or again.

use std::path::{Path, PathBuf};

use ipnet::IpNet;
use jiff::Timestamp;

use super::{
    FeedReport, Format, ListSource,
    feed::{self, Content, ParseError},
};
use crate::{
    config::{Unreadable, read_at_most},
    text,
};

/// The largest feed file, in MiB; ten million addresses take less.
const MAX_MIB: u64 = 256;

/// Of how many entries one may be bad.
const ONE_BAD_OF: u64 = 10;

/// What was read of a feed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// Which file, and what came of it.
    pub report: FeedReport,
    /// As few prefixes as have all its addresses, in order.
    pub prefixes: Vec<IpNet>,
}

/// A feed file of which nothing is used.
#[derive(Debug, thiserror::Error)]
#[error("the file '{}' {refusal}", path.display())]
pub struct FeedError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub refusal: Refusal,
}

/// Why a feed file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It cannot be read as a file.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It is not in its format, as a whole.
    #[error("is refused: {0}")]
    Parse(#[from] ParseError),
    /// Too much of it is not in its format.
    #[error(
        "is refused: {} of {} entries cannot be read, the first in line {line}: {message}",
        text::count(*bad),
        text::count(*of)
    )]
    TooManyBad {
        /// How many entries cannot be read.
        bad: u64,
        /// How many there are.
        of: u64,
        /// The line of the first of them, counted from 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
}

/// Reads the files of a list, in their order. Of a file that has to be refused, what is `old`
/// stays, which says so then.
#[must_use]
pub fn read(source: &ListSource, old: &[Feed]) -> Vec<Result<Feed, FeedError>> {
    let files = source.files.iter();
    files
        .map(|path| {
            let old = old.iter().find(|feed| feed.report.path == *path);
            read_file(path, source.format, old)
        })
        .collect()
}

/// Reads a feed file. If it has to be refused, what is `old` stays, which says so then.
///
/// # Errors
///
/// When it is refused, and nothing is old.
pub fn read_file(path: &Path, format: Format, old: Option<&Feed>) -> Result<Feed, FeedError> {
    match (read_anew(path, format), old) {
        (Ok(feed), _) => Ok(feed),
        (Err(refusal), Some(old)) => {
            let mut feed = old.clone();
            feed.report.kept_old = Some(refusal.to_string());
            Ok(feed)
        }
        (Err(refusal), None) => Err(FeedError {
            path: path.to_owned(),
            refusal,
        }),
    }
}

fn read_anew(path: &Path, format: Format) -> Result<Feed, Refusal> {
    let file = read_at_most(path, MAX_MIB)?;
    let Content {
        format,
        prefixes,
        entries,
        bad,
        first_bad,
    } = feed::parse(&file.bytes, format)?;
    let of = entries + bad;
    if let Some(first) = first_bad.first()
        && bad * ONE_BAD_OF > of
    {
        return Err(Refusal::TooManyBad {
            bad,
            of,
            line: first.line,
            message: first.message.clone(),
        });
    }
    let modified = file
        .modified
        .and_then(|time| Timestamp::try_from(time).ok());
    Ok(Feed {
        report: FeedReport {
            path: path.to_owned(),
            format,
            entries,
            bad,
            first_bad,
            modified,
            kept_old: None,
        },
        prefixes: IpNet::aggregate(&prefixes),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::lists::WhenStale;

    /// A file in a directory that goes with the test.
    fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("feed.netset");
        fs::write(&path, text).expect("a file");
        (directory, path)
    }

    #[test]
    fn more_than_one_bad_entry_of_ten_is_too_many() {
        let text = |good: usize, bad: usize| {
            let good = (0..good).map(|last| format!("192.0.2.{last}\n"));
            good.chain((0..bad).map(|_| "?\n".to_owned()))
                .collect::<String>()
        };
        for (good, bad, is_refused) in [
            (9, 1, false),
            (8, 1, true),
            (90, 10, false),
            (90, 11, true),
            (0, 1, true),
            (0, 0, false),
        ] {
            let (_directory, path) = written(&format!("# a feed\n{}", text(good, bad)));
            let read = read_file(&path, Format::Auto, None);
            assert_eq!(read.is_err(), is_refused, "{good} good, {bad} bad");
            if let Ok(feed) = read {
                let report = feed.report;
                assert_eq!((report.entries, report.bad), (good as u64, bad as u64));
                assert!(report.modified.is_some());
            }
        }
    }

    #[test]
    fn what_is_refused_leaves_what_was_there() {
        let (directory, path) = written("192.0.2.0/25\n192.0.2.128/25\n");
        let source = ListSource {
            name: "feed".to_owned(),
            cidr: vec!["192.0.3.0/24".parse().expect("a prefix")],
            files: vec![path.clone()],
            format: Format::Auto,
            max_age_ns: None,
            when_stale: WhenStale::Report,
        };
        let mut old = read(&source, &[]);
        let old = old.remove(0).expect("a feed");
        assert_eq!(old.report.entries, 2);
        assert_eq!(old.prefixes, ["192.0.2.0/24".parse::<IpNet>().unwrap()]);

        for (text, reason) in [
            (
                "?\n192.0.2.1\n",
                "is refused: 1 of 2 entries cannot be read",
            ),
            ("", "is refused: it is empty"),
        ] {
            fs::write(&path, text).expect("the file");
            let mut kept = read(&source, std::slice::from_ref(&old));
            let kept = kept.remove(0).expect("what was there");
            assert_eq!(kept.prefixes, old.prefixes);
            let told = kept.report.kept_old.clone().expect("a reason");
            assert!(told.starts_with(reason), "{told}");
            let warnings = kept.report.warnings();
            assert_eq!(warnings.len(), 1);
            assert!(warnings[0].ends_with("; the list still has what it held before"));
        }
        let list = source.list(std::slice::from_ref(&old), Timestamp::now());
        assert_eq!(list.prefixes, ["192.0.2.0/23".parse::<IpNet>().unwrap()]);

        drop(directory);
        let kept = read_file(&path, Format::Auto, Some(&old)).expect("what was there");
        let told = kept.report.kept_old.expect("a reason");
        assert!(told.starts_with("cannot be read: No such file"), "{told}");
        let error = read_file(&path, Format::Auto, None).expect_err("nothing is there");
        assert!(error.to_string().starts_with("the file '"), "{error}");
    }

    #[test]
    fn a_stale_file_is_left_out_where_that_is_configured() {
        let (_directory, path) = written("192.0.2.0/24\n");
        let feed = read_file(&path, Format::Auto, None).expect("a feed");
        let modified = feed.report.modified.expect("a time");
        let check = |when_stale, age_s: i64, prefixes: usize| {
            let source = ListSource {
                name: "feed".to_owned(),
                cidr: vec![],
                files: vec![path.clone()],
                format: Format::Auto,
                max_age_ns: Some(60_000_000_000),
                when_stale,
            };
            let now = modified + jiff::SignedDuration::from_secs(age_s);
            let list = source.list(std::slice::from_ref(&feed), now);
            assert_eq!(list.prefixes.len(), prefixes);
            assert_eq!(source.is_stale(&feed, now), age_s > 60);
        };
        check(WhenStale::Drop, -60, 1);
        check(WhenStale::Drop, 60, 1);
        check(WhenStale::Drop, 61, 0);
        check(WhenStale::Report, 61, 1);
    }
}
