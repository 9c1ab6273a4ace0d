//! Reads feed files, at the start or again later.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{
    Baseline, Change, Coverage, Excess, Feed, FeedReport, ListSource,
    bounds::beyond_own,
    feed::{self, Content, ParseError},
};
use crate::{
    file::{FileError, read_at_most},
    text,
};

/// The largest feed file, in MiB. A million prefixes take less, except in very verbose feeds.
const MAX_MIB: u64 = 128;

/// One in this many entries may be bad.
const ONE_BAD_OF: u64 = 10;

/// A feed file that was refused.
#[derive(Debug, thiserror::Error)]
#[error("the file '{}' {refusal}", path.display())]
pub struct FeedError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub refusal: Refusal,
}

/// The reason why a feed file is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is unreadable.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// As a whole, it does not have its format.
    #[error("is refused: {0}")]
    Parse(#[from] ParseError),
    /// Too many of its entries do not have its format.
    #[error(
        "is refused: {} of {} entries cannot be read, the first in line {line}: {message}",
        text::count(*bad),
        text::count(*of)
    )]
    TooManyBad {
        /// The number of unreadable entries.
        bad: u64,
        /// The number of all entries.
        of: u64,
        /// The line of the first bad entry, counted from 1.
        line: u64,
        /// Its error.
        message: String,
    },
    /// Its coverage is beyond the bounds.
    #[error("is refused: it covers {}", excess(.0))]
    TooWide(Excess),
    /// The coverage of all feeds of the list together is beyond the bounds.
    #[error("is refused: with it, the list's feeds cover {}", excess(.0))]
    TooWideTogether(Excess),
    /// Its change is beyond the bounds: an operator must accept it.
    #[error(
        "is held back: it would {change}; if this is right, accept it with `limiter lists accept \
         {list} --digest {digest}`"
    )]
    Deferred {
        /// The list.
        list: String,
        /// The change.
        change: Change,
        /// The content's SHA-256, as `sha256sum` prints it.
        digest: String,
    },
}

fn excess(excess: &Excess) -> String {
    let (fraction, most) = (excess.fraction, excess.most);
    format!(
        "{fraction} of {}, but the list's 'max-coverage' allows {most}",
        excess.space()
    )
}

/// The time of reading, and the contents that operators accepted.
#[derive(Clone, Copy, Debug)]
pub struct ReadContext<'a> {
    /// The time.
    pub now: Timestamp,
    /// The digests of contents that may change by any amount.
    pub accepted: &'a [String],
}

/// Reads the files of a list that are due or have no `old` content. A refused file keeps its previous
/// content, and its report says why. Results are in the list's order.
pub fn read(
    source: &ListSource,
    old: &[Feed],
    is_due: impl Fn(&Path) -> bool,
    context: ReadContext<'_>,
) -> Vec<Result<Feed, FeedError>> {
    let old_of = |path: &Path| old.iter().find(|feed| feed.report.path == path);
    let is_read = |path: &Path| is_due(path) || old_of(path).is_none();
    let files = source.files.iter();
    let mut feeds: Vec<_> = files
        .map(|path| match old_of(path) {
            Some(old) if !is_due(path) => Ok(old.clone()),
            old => {
                read_anew(source, path, old, context).or_else(|refusal| instead(path, old, refusal))
            }
        })
        .collect();
    let known = feeds.iter().flatten().map(|feed| feed.prefixes.as_slice());
    let together = beyond_own(&source.cidr, known);
    if let Err(excess) = source.bounds.check_coverage(together) {
        // It is unknown which of them is wrong, so refuse all new ones.
        let are_new = feeds.iter_mut().zip(&source.files);
        for (feed, path) in are_new.filter(|(_, path)| is_read(path)) {
            if feed
                .as_ref()
                .is_ok_and(|feed| feed.report.kept_old.is_none())
            {
                *feed = instead(path, old_of(path), Refusal::TooWideTogether(excess));
            }
        }
    }
    feeds
}

/// Returns the substitute for a refused file: its previous content.
fn instead(path: &Path, old: Option<&Feed>, refusal: Refusal) -> Result<Feed, FeedError> {
    let Some(old) = old else {
        return Err(FeedError {
            path: path.to_owned(),
            refusal,
        });
    };
    let mut feed = old.clone();
    feed.report.kept_old = Some(refusal.to_string());
    feed.report.deferred = match refusal {
        Refusal::Deferred { digest, .. } => Some(digest),
        _ => None,
    };
    Ok(feed)
}

fn read_anew(
    source: &ListSource,
    path: &Path,
    old: Option<&Feed>,
    context: ReadContext<'_>,
) -> Result<Feed, Refusal> {
    let file = read_at_most(path, MAX_MIB)?;
    let Content {
        format,
        prefixes,
        entries,
        bad,
        first_bad,
    } = feed::parse(&file.bytes, source.format)?;
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
    let beyond = beyond_own(&source.cidr, [prefixes.as_slice()].into_iter());
    source
        .bounds
        .check_coverage(beyond)
        .map_err(Refusal::TooWide)?;
    let covers = Coverage::of(&prefixes);
    let count = prefixes.len() as u64;
    let baseline = baseline(source, &file.bytes, (covers, count), old, context)?;
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
            prefixes: count,
            covers,
            baseline,
            kept_old: None,
            deferred: None,
        },
        prefixes,
    })
}

/// Returns the new baseline of a file that covers `covers` in so many prefixes, or the change beyond the
/// bounds.
fn baseline(
    source: &ListSource,
    bytes: &[u8],
    (covers, prefixes): (Coverage, u64),
    old: Option<&Feed>,
    context: ReadContext<'_>,
) -> Result<Baseline, Refusal> {
    let from_here = Baseline {
        covers,
        since: context.now,
    };
    let Some(FeedReport {
        baseline,
        covers: covered,
        prefixes: before,
        ..
    }) = old.map(|old| &old.report)
    else {
        return Ok(from_here);
    };
    let baseline = baseline.next(*covered, context.now);
    let (covers, prefixes) = ((baseline.covers, covers), (*before, prefixes));
    let Err(change) = source.bounds.check_change(covers, prefixes) else {
        return Ok(baseline);
    };
    let digest = format!("{:x}", Sha256::digest(bytes));
    if context.accepted.contains(&digest) {
        return Ok(from_here);
    }
    Err(Refusal::Deferred {
        list: source.name.clone(),
        change,
        digest,
    })
}

#[cfg(test)]
mod tests;
