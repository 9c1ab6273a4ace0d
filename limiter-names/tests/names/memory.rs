//! Many more flows than fit, with incomplete hellos or with names: memory stays within the settings, and equals the
//! memory that the reader and the follower report.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    net::Ipv4Addr,
};

use limiter_names::{
    Flow, Follower, FollowerSettings, Outcome, Protocol, Reader, Segment, Settings,
    testing::{Hello, Initial, Version, crypto, records},
};

/// Counts the memory of each thread: the test's thread shares none with the harness's.
struct CountingAllocator;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
}

fn now() -> usize {
    NOW.get()
}

// SAFETY: the system's allocator does all work, under its own rules; the counter neither allocates nor has a
// destructor.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        NOW.set(now().wrapping_add(layout.size()));
        // SAFETY: the caller keeps to the rules of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.set(now().wrapping_sub(layout.size()));
        // SAFETY: the caller keeps to the rules of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTED: CountingAllocator = CountingAllocator;

/// The maximum memory of a flow's entry, in bytes.
const ENTRY: usize = 400;

/// The memory of the budgets of one protocol's clients, in bytes.
const BUDGETS: usize = 1 << 14;

/// The maximum of other memory: the scratch space, and a table's end.
const BESIDE: usize = 1 << 14;

fn hello() -> Hello<'static> {
    Hello {
        name: Some(b"www.example.com"),
        applications: &[],
        key_share: 1200,
        is_encrypted: false,
        ..Hello::NONE
    }
}

fn flow(number: u32, protocol: Protocol) -> Flow {
    Flow {
        client: Ipv4Addr::from(0x0a00_0000 + number).into(),
        server: Ipv4Addr::new(198, 51, 100, 1).into(),
        client_port: 50_000,
        server_port: 443,
        protocol,
    }
}

/// The packets of clients that send only the first half.
struct Halves {
    /// A hello in TLS.
    stream: Vec<u8>,
    /// The same hello in QUIC, in two datagrams.
    datagrams: [Vec<u8>; 2],
}

impl Halves {
    fn new() -> Self {
        let message = hello().message();
        let (one, two) = message.split_at(900);
        let initial = |number, at, part| {
            let initial = Initial {
                version: Version::One,
                keyed_by: b"01234567",
                connection: b"01234567",
                token: &[],
                number,
            };
            initial.sealed(&crypto(at, part), 1200)
        };
        Self {
            datagrams: [initial(0, 0, one), initial(1, 900, two)],
            stream: records(&message, 1 << 14),
        }
    }

    /// A flow by its number, with its half. `first`: the known number of its first byte, if that is 0.
    fn half(&self, number: u32, first: Option<u32>) -> (Flow, Segment<'_>) {
        let tcp = |sequence: u32, payload| Segment::Tcp {
            sequence,
            first,
            payload,
        };
        match number % 16 {
            0 => (
                flow(number, Protocol::Udp),
                Segment::Udp {
                    payload: &self.datagrams[0],
                },
            ),
            // From gaps to the longest beginnings.
            kind @ 1..8 => {
                let length = 200 * kind as usize;
                let half = tcp(
                    number % 3,
                    &self.stream[..length.min(self.stream.len() - 1)],
                );
                (flow(number, Protocol::Tcp), half)
            }
            _ => (flow(number, Protocol::Tcp), tcp(0, &self.stream[..64])),
        }
    }
}

/// Feeds halves, and now and then a whole flow in two pieces; returns the peak memory.
fn flood(reader: &mut Reader, flows: u32) -> usize {
    let halves = Halves::new();
    let before = now();
    let mut most = 0;
    for number in 0..flows {
        let time_ns = u64::from(number) * 1000;
        let first = (number % 2 == 0).then_some(0);
        let (flow, segment) = halves.half(number, first);
        assert!(reader.feed(time_ns, flow, segment).is_none());
        if number % 16 == 9 {
            // A client that soon sends the rest is read, for any number of halves.
            let rest = Segment::Tcp {
                sequence: 64,
                first,
                payload: &halves.stream[64..],
            };
            let outcome = reader.feed(time_ns, flow, rest);
            assert!(matches!(outcome, Some(Outcome::Name(_))), "{outcome:?}");
        }
        let allocated = now() - before;
        assert!(
            allocated <= reader.memory() && reader.memory() <= allocated + BESIDE,
            "{allocated} bytes, of which it knows {}",
            reader.memory()
        );
        most = most.max(allocated);
    }
    most
}

#[test]
fn halves_without_end_take_what_the_settings_allow() {
    for (halves, flows, bytes) in [
        (200_000, 1 << 16, 1 << 26),
        (100_000, 1 << 16, 1 << 24),
        (20_000, 1000, 1 << 26),
    ] {
        let settings = Settings {
            flows,
            bytes,
            ..Settings::default()
        };
        let before = now();
        let mut reader = Reader::new(settings);
        let most = flood(&mut reader, halves);
        let bound = bytes + flows as usize * ENTRY + BESIDE;
        assert!(most <= bound, "{most} bytes of {bound}");
        assert!(reader.half_there() <= flows as usize);
        let forgotten = reader.forgotten();
        assert!(forgotten.gave_way > u64::from(halves) / 2, "{forgotten:?}");
        drop(reader);
        // All memory is freed.
        assert_eq!(now(), before);
        // Only now: the harness keeps the printed text, which would count.
        println!("{flows} flows, {bytes} bytes: {most} bytes at most, of {bound}");
    }
}

/// The maximum memory for incomplete hellos in a follower of live flows, for both protocols, as the documentation
/// promises, in bytes.
const HALF_THERE: usize = 93_323_264;

/// Clients begin hellos without completing them, faster than any budget of pieces would allow.
#[test]
fn halves_without_end_leave_a_follower_within_its_bound_and_others_their_names() {
    let settings = FollowerSettings {
        pieces_a_second: u32::MAX,
        ..FollowerSettings::default()
    };
    let reader = settings.reader;
    assert_eq!(
        2 * (reader.bytes + reader.flows as usize * ENTRY),
        HALF_THERE
    );
    let halves = Halves::new();
    let before = now();
    let mut follower = Follower::new(settings);
    let mut most = 0;
    // At last QUIC alone, until its room is full, too.
    for number in (0..200_000).chain((200_000..680_000).step_by(16)) {
        let (flow, segment) = halves.half(number, Some(0));
        follower.feed(u64::from(number) * 1000, flow, segment, |change| {
            panic!("{change:?}");
        });
        most = most.max(now() - before);
    }
    assert!(most <= follower.memory() + BESIDE, "{most} bytes at most");
    let bound = HALF_THERE + 2 * (BUDGETS + BESIDE);
    assert!(most <= bound, "{most} bytes of {bound}");
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let forgotten = follower.forgotten(protocol);
        assert!(forgotten.gave_way > 5_000, "{protocol:?}: {forgotten:?}");
    }
    // A client that completes its hello has a name, in two pieces as usual today.
    let stream = halves.stream.split_at(700);
    let tcp = |sequence, payload| Segment::Tcp {
        sequence,
        first: Some(0),
        payload,
    };
    let [one, two] = &halves.datagrams;
    for (protocol, pieces) in [
        (Protocol::Tcp, [tcp(0, stream.0), tcp(700, stream.1)]),
        (
            Protocol::Udp,
            [one, two].map(|payload| Segment::Udp { payload }),
        ),
    ] {
        for segment in pieces {
            follower.feed(1_000_000_000, flow(2_000_000, protocol), segment, |_| {});
        }
        assert_eq!(follower.followed(protocol).named, 1, "{protocol:?}");
    }
    drop(follower);
    drop(halves);
    println!("{most} bytes at most, of {bound}");
}

/// Live flows with names of 30 and 222 bytes.
#[test]
fn named_flows_without_end_take_what_the_settings_allow() {
    const FLOWS: u32 = 300_000;
    let settings = FollowerSettings {
        pieces_a_second: u32::MAX,
        ..FollowerSettings::default()
    };
    let label = "x".repeat(50);
    let long = format!("{label}.{label}.{label}.{label}.shop.example.com");
    let of_name = |name: &str| format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
    let requests = [of_name(&long), of_name(&long[long.len() - 30..])];
    let before = now();
    let mut follower = Follower::new(settings);
    let mut most = 0;
    for number in 0..FLOWS {
        // Short names fill the entries, long ones the bytes.
        let request = &requests[usize::from(number < FLOWS / 2)];
        let segment = Segment::Tcp {
            sequence: 1,
            first: Some(1),
            payload: request.as_bytes(),
        };
        let flow = flow(number, Protocol::Tcp);
        follower.feed(u64::from(number) * 100_000, flow, segment, |_| {});
        let allocated = now() - before;
        assert!(
            allocated <= follower.memory() && follower.memory() <= allocated + BESIDE,
            "{allocated} bytes, of which it knows {}",
            follower.memory()
        );
        most = most.max(allocated);
    }
    let counts = follower.followed(Protocol::Tcp);
    assert_eq!((counts.named, counts.overrun), (FLOWS.into(), 0));
    let kept = u64::try_from(follower.flows().count()).expect("few flows");
    assert_eq!(counts.gave_way, u64::from(FLOWS) - kept);
    let bytes = settings.name_bytes + settings.first_bytes;
    let bound = bytes + 2 * settings.flows as usize * ENTRY + 2 * BUDGETS + BESIDE;
    assert!(most <= bound, "{most} bytes of {bound}");
    drop(follower);
    // All memory is freed.
    assert_eq!(now(), before);
    println!("{kept} flows at the end: {most} bytes at most, of {bound}");
}
