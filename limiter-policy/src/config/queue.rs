//! The field `queue` of a limit on connections: waiting clients, as in Traffic Server.

use limiter_common::connection::queue::MOST_TICKETS;

use super::{
    max_age,
    reader::{Fields, Reader},
};
use crate::policy::{Mode, Queue};

pub(super) const FIELD: &str = "queue";

const SIZE: &str = "size";

/// Traffic Server's default has no bound.
const DEFAULT_SIZE: u64 = 1000;

/// Traffic Server's default has no bound. The client's kernel sets one: Linux sends its last SYN 67 s after
/// the first, so an older ticket has no client.
const DEFAULT_MAX_AGE_NS: u64 = 70_000_000_000;

/// Reads the queue; `None`: clients do not wait.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    mode: Mode,
) -> Option<Queue> {
    let (name, node) = fields.find(FIELD)?;
    let expected = "a map, possibly empty, with 'size' and 'max-age'";
    let of_queue = reader.fields(node, expected, &[SIZE, max_age::FIELD])?;
    let size = match of_queue.get(SIZE) {
        Some(node) => reader.whole(node, SIZE, 0..=MOST_TICKETS)?,
        None => DEFAULT_SIZE,
    };
    let max_age_ns = match of_queue.get(max_age::FIELD) {
        Some(_) => max_age::read(reader, &of_queue),
        None => DEFAULT_MAX_AGE_NS,
    };
    if mode == Mode::Observe {
        let message = "'queue' is not for mode observe, which turns nobody away: leave it out, or \
                       enforce the limit";
        reader.error(name.at, message.to_owned());
    }
    // As in Traffic Server, size 0 disables the queue.
    (size != 0).then_some(Queue { size, max_age_ns })
}
