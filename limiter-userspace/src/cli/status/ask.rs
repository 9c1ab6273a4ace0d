//! Asks the daemon for its status.

use anyhow::bail;

use crate::{
    cli::args::ReadArgs,
    protocol::{Answer, Request, Status},
};

pub(in crate::cli) fn fetch(read: &ReadArgs) -> anyhow::Result<Status> {
    let Answer::Status(status) = read.ask(&Request::Status)? else {
        bail!("the daemon gave an unexpected answer");
    };
    Ok(*status)
}
