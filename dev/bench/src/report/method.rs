//! The method of measurement, for the document.

use crate::{plan::Effort, results::Results};

pub(super) fn text(results: &Results) -> String {
    let Effort {
        rounds,
        seconds,
        clients_rounds,
        clients_seconds,
        ..
    } = results.effort;
    format!(
        "## Method

Each contender has a veth pair of its own between two network namespaces. It is warmed up until it has seen nearly all
sources, or its smaller store has been filled more than once. Then all are measured in turns, {rounds} times
{seconds} s each. A figure is the median of its runs. Nothing expires meanwhile.

* **Generator**: an XDP program on live frames (`BPF_PROG_TEST_RUN`) draws a random source for each, updates the
  checksum and redirects the frame into the veth pair. The receiver handles batches of 64 on the same CPU, so a rate is
  that of both together. Time of other processes does not count. Every frame must be accounted for: seen by the
  contender, or lost before it.
* **Packets a second** exclude the network stack: packets that pass are dropped right behind the limit. Each source may
  send 1000 a second, so a flood from few sources exceeds the limit, one from many does not.
* **Nanoseconds a packet**: `BPF_PROG_TEST_RUN` without live frames. No packet exceeds a limit, so each is charged to
  all, except in the rows of refused packets.
* **Clients**: {clients_rounds} × {clients_seconds} s for each contender. The generator sends their packets between the
  flood's, so none is lost on the way. A filter on the application's UDP socket, behind the whole network stack, counts
  them. Allowed packets are whole ones: percentages of the slow client are coarse.

"
    )
}
