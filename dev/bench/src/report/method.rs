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

Everything is measured in one run, in network namespaces joined by a veth pair. For each flood
every contender is set up on its own pair and warmed up until it has seen nearly all sources or,
with room for fewer, has been filled more than once. Then they are measured in turns, {rounds} times,
{seconds} s each. A figure is the median of its runs.

* **Generator.** An XDP program that the kernel runs on live frames (`BPF_PROG_TEST_RUN`) draws a
  random source for each, updates the IPv4 header's checksum, and redirects the frame into the veth
  pair. The receiver handles a batch of 64 on the same CPU before the next batch is made, so the
  rate is that of generator and receiver together. Time in which another process had the CPU does
  not count. A run counts only if every frame sent is accounted for: seen by the contender, or lost
  before it.
* **Packets a second exclude the network stack**: what a contender passes is dropped right behind
  it, by the limiter's own build for this benchmark, or by the rule after the limit.
* **Limits.** Packets a second: 1000 for each source, so that a flood from few sources exceeds the
  limit and one from many does not. Nanoseconds a packet: no packet exceeds a limit, so each is
  charged to every limit. Second and further limits have room.
* **Strategies** are measured in nanoseconds a packet only, with IPv4: the kind of owner matters to
  none. The more sources, the longer a moving window is, so that its log holds some of the last
  packets and none is refused; the packets that passed are beside the memory of the buckets.
* **Nanoseconds a packet**: `BPF_PROG_TEST_RUN` without live frames; all programs draw the source
  by the same code.
* **Clients**: {clients_rounds} × {clients_seconds} s for each contender. The generator makes their
  packets, by the clock, in between the flood's, so none is lost on the way to the limiter. Behind
  the limiter and all of the network stack, the filter of the application's UDP socket counts them.
  The flood's packets that pass are dropped right behind the limiter, so that the flood is as fast
  as the limiter can take it. Allowed packets are counted in whole ones, from a client's first to
  its last: the slow client has few, so its percentages are coarse.
* **Lost before**: frames that the veth pair dropped, of a million; the worst run.
* Nothing expires during the measurement.

"
    )
}
