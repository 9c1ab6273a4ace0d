//! How it was measured, for the document.

use crate::{plan::Effort, results::Results};

/// The section.
pub(super) fn text(results: &Results) -> String {
    let Effort {
        rounds,
        seconds,
        clients_rounds,
        clients_seconds,
    } = results.effort;
    format!(
        "## Method

Everything is measured in one run, in network namespaces joined by a veth pair. For each flood
every contender is set up on a pair of its own and warmed up until it has seen nearly all sources
or, with room for fewer, been filled over again. Then they are measured in turns, {rounds} times
over, {seconds} s each. A figure is the median of its runs.

* **Generator.** An XDP program that the kernel runs on live frames (`BPF_PROG_TEST_RUN`) draws a
  random source for each, keeps the IPv4 header's checksum right, and redirects it into the veth
  pair. The receiver works through a batch of 64 on the same CPU before the next batch is made, so
  the rate is that of generator and receiver together. Time in which another process had the CPU
  is not counted; a run counts only if every frame that was sent is accounted for: seen by the
  contender, or lost before it.
* **The network stack is left out** of packets a second: what a contender lets pass is dropped
  right behind it, by the limiter's own build for this benchmark, or the rule after the limit.
* **Limits.** Packets a second: 1000 for each source, so that a flood from few sources is over the
  limit and one from many is not. Nanoseconds a packet: nothing is over a limit, so everything is
  charged to every limit. Second and further limits have room.
* **Strategies** are among nanoseconds a packet alone, with IPv4: whose the bucket is matters to none.
  A moving window is the longer the more sources there are, so that its log has some of the last
  packets and none is refused; how many passed stands beside what the buckets take.
* **Nanoseconds a packet**: `BPF_PROG_TEST_RUN` without live frames, the source drawn inside the
  program, by the same code in all of them.
* **Clients**: {clients_rounds} × {clients_seconds} s for each contender. Their packets are made
  by the generator, by the clock, in between the flood's, so none is lost on the way to the limiter.
  Behind the limiter and all of the network stack, the filter of the application's UDP socket
  counts them. What passes of the flood is dropped right behind the limiter, so that the flood is
  as fast as that can take it. What is allowed is counted in whole packets, from a client's first
  to its last: of the slow one's they are few, so its percentages are coarse.
* **Lost before**: frames that the veth pair dropped, of a million; the worst run.
* Nothing expires while it is measured.

"
    )
}
