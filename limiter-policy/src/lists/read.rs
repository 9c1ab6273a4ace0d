//! Reading feed files: anew, or again.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use limiter_common::address::Family;
use sha2::{Digest as _, Sha256};

use super::{
    Baseline, Coverage, Excess, Feed, FeedReport, Growth, ListSource,
    bounds::beyond_own,
    feed::{self, Content, ParseError},
};
use crate::{
    file::{Unreadable, read_at_most},
    text,
};

/// The largest feed file, in MiB; a million prefixes take less, but for those who say much of each.
const MAX_MIB: u64 = 128;

/// Of how many entries one may be bad.
const ONE_BAD_OF: u64 = 10;

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
    /// It covers too much.
    #[error("is refused: it covers {}", excess(.0))]
    TooWide(Excess),
    /// All feeds of the list together do.
    #[error("is refused: with it the feeds of the list cover {}", excess(.0))]
    TooWideTogether(Excess),
    /// It has grown too fast: somebody has to look at it.
    #[error(
        "is held back: it would grow from {} to {} of {}, more than {}-fold within a day; if it is \
         right, `limiter lists accept {list} --digest {digest}` puts it in force",
        text::count(growth.from),
        text::count(growth.to),
        unit(growth.family),
        growth.factor
    )]
    Grown {
        /// The list.
        list: String,
        /// How much.
        growth: Growth,
        /// What says which content it is, as `sha256sum` does.
        digest: String,
    },
}

fn excess(excess: &Excess) -> String {
    let (share, most) = (excess.share, excess.most);
    format!(
        "{share} of {}, where the list's 'max-coverage' allows {most}",
        excess.space()
    )
}

const fn unit(family: Family) -> &'static str {
    match family {
        Family::V4 => "the IPv4 addresses",
        Family::V6 => "the /64s of IPv6",
    }
}

/// When files are read, and what was said of them.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The time.
    pub now: Timestamp,
    /// The digests of contents that may have grown by anything.
    pub accepted: &'a [String],
}

/// Reads those files of a list that are due, or of which nothing is `old`. Of a file that has to be
/// refused, what is old stays, which says so then. They are in the list's order.
pub fn read(
    source: &ListSource,
    old: &[Feed],
    is_due: impl Fn(&Path) -> bool,
    look: Look<'_>,
) -> Vec<Result<Feed, FeedError>> {
    let old_of = |path: &Path| old.iter().find(|feed| feed.report.path == path);
    let is_read = |path: &Path| is_due(path) || old_of(path).is_none();
    let files = source.files.iter();
    let mut feeds: Vec<_> = files
        .map(|path| match old_of(path) {
            Some(old) if !is_due(path) => Ok(old.clone()),
            old => {
                read_anew(source, path, old, look).or_else(|refusal| instead(path, old, refusal))
            }
        })
        .collect();
    let known = feeds.iter().flatten().map(|feed| feed.prefixes.as_slice());
    let together = beyond_own(&source.cidr, known);
    if let Err(excess) = source.bounds.check_coverage(together) {
        // Nobody knows which of them is wrong.
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

/// What is used instead of a file that is refused.
fn instead(path: &Path, old: Option<&Feed>, refusal: Refusal) -> Result<Feed, FeedError> {
    let Some(old) = old else {
        return Err(FeedError {
            path: path.to_owned(),
            refusal,
        });
    };
    let mut feed = old.clone();
    feed.report.kept_old = Some(refusal.to_string());
    feed.report.held = match refusal {
        Refusal::Grown { digest, .. } => Some(digest),
        _ => None,
    };
    Ok(feed)
}

fn read_anew(
    source: &ListSource,
    path: &Path,
    old: Option<&Feed>,
    look: Look<'_>,
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
    let baseline = baseline(source, &file.bytes, covers, old, look)?;
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
            covers,
            baseline: Some(baseline),
            kept_old: None,
            held: None,
        },
        prefixes,
    })
}

/// From what a file may grow that covers so much now, if it has not grown too much.
fn baseline(
    source: &ListSource,
    bytes: &[u8],
    covers: Coverage,
    old: Option<&Feed>,
    look: Look<'_>,
) -> Result<Baseline, Refusal> {
    let from_here = Baseline {
        covers,
        since: look.now,
    };
    let Some(old) = old else {
        return Ok(from_here);
    };
    let baseline = match old.report.baseline {
        Some(baseline) => baseline.next(old.report.covers, look.now),
        // It was read by a version that did not count.
        None => Baseline {
            covers: Coverage::of(&old.prefixes),
            since: look.now,
        },
    };
    let Err(growth) = source.bounds.check_growth(baseline.covers, covers) else {
        return Ok(baseline);
    };
    let digest = format!("{:x}", Sha256::digest(bytes));
    if look.accepted.contains(&digest) {
        return Ok(from_here);
    }
    Err(Refusal::Grown {
        list: source.name.clone(),
        growth,
        digest,
    })
}

#[cfg(test)]
mod tests;
