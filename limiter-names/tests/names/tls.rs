//! TLS: hellos, and messages that are no hello.

use limiter_names::{
    Application, NameSource, NoName, Outcome,
    testing::{Hello, records},
};

use super::{NAME, assert_named, assert_unnamed, read_tcp};

const HELLO: Hello<'_> = Hello {
    name: Some(NAME.as_bytes()),
    applications: &[b"h2", b"http/1.1"],
    key_share: 1200,
    is_encrypted: false,
    ..Hello::NONE
};

#[test]
fn a_hello_says_its_name_and_what_it_would_speak() {
    let Some(Outcome::Name(found)) = read_tcp(&records(&HELLO.message(), 1 << 14)) else {
        panic!("no name");
    };
    assert_eq!((found.name.as_str(), found.how), (NAME, NameSource::Tls));
    assert!(!found.may_be_outer);
    let offered: Vec<_> = found.applications.iter().map(Application::name).collect();
    assert_eq!(offered, ["http1", "http2"]);
}

#[test]
fn an_encrypted_hello_shows_the_outer_name() {
    let hello = Hello {
        is_encrypted: true,
        ..HELLO
    };
    let Some(Outcome::Name(found)) = read_tcp(&records(&hello.message(), 1 << 14)) else {
        panic!("no name");
    };
    assert!(found.may_be_outer);
}

/// The server uses the name, or may ask for a second hello.
#[test]
fn a_hello_says_whether_its_name_binds_the_server() {
    let tls13 = Hello {
        versions: &[4, 3],
        ..HELLO
    };
    for (hello, binds, comes_again) in [
        (HELLO, true, false),
        (tls13, true, true),
        (
            Hello {
                session: &[7; 32],
                ..HELLO
            },
            false,
            false,
        ),
        (
            Hello {
                session: &[7; 32],
                ..tls13
            },
            true,
            true,
        ),
        (
            Hello {
                others: &[(35, &[])],
                ..HELLO
            },
            true,
            false,
        ),
        (
            Hello {
                others: &[(35, &[7; 100])],
                ..tls13
            },
            false,
            true,
        ),
        (
            Hello {
                others: &[(42, &[])],
                ..tls13
            },
            false,
            true,
        ),
    ] {
        let stream = records(&hello.message(), 1 << 14);
        let behind = [&stream[..], &[20, 3, 3, 0, 1, 1]].concat();
        let Some(Outcome::Name(found)) = read_tcp(&behind) else {
            panic!("no name: {hello:?}");
        };
        assert_eq!(
            (found.is_binding, found.may_come_again),
            (binds, comes_again),
            "{hello:?}"
        );
        assert_eq!(found.bytes, Some(stream.len()));
    }
}

/// A server may read another hello in the same record.
#[test]
fn another_message_in_the_record_of_a_hello_is_malformed() {
    let message = HELLO.message();
    let twice = message.repeat(2);
    for most in [1 << 14, message.len() + 1, 700] {
        let stream = records(&twice, most);
        let read = read_tcp(&stream);
        // Records of another hello are behind this one.
        if message.len().is_multiple_of(most) {
            assert_named(read.as_ref(), NAME);
        } else {
            assert_unnamed(read.as_ref(), NoName::Malformed);
        }
    }
    let whole = records(&message, 1 << 14);
    let mut longer = whole.clone();
    longer[3..5].copy_from_slice(&u16::try_from(message.len() + 1).unwrap().to_be_bytes());
    assert_unnamed(read_tcp(&longer).as_ref(), NoName::Malformed);
}

#[test]
fn records_may_be_of_any_length() {
    let message = HELLO.message();
    for most in [1, 2, 3, 4, 5, 100, 1000] {
        let stream = records(&message, most);
        if stream.len() <= 4096 {
            assert_named(read_tcp(&stream).as_ref(), NAME);
        } else {
            // Records of one byte take six.
            assert_unnamed(read_tcp(&stream).as_ref(), NoName::TooLong);
        }
    }
    let short = Hello {
        key_share: 32,
        ..HELLO
    };
    assert_named(read_tcp(&records(&short.message(), 1)).as_ref(), NAME);
}

#[test]
fn what_names_nobody_says_why() {
    let of = |hello: Hello<'_>| read_tcp(&records(&hello.message(), 1 << 14));
    let named = |name: &'static [u8]| {
        of(Hello {
            name: Some(name),
            ..HELLO
        })
    };
    let unnamed = Hello {
        name: None,
        ..HELLO
    };
    assert_unnamed(of(unnamed).as_ref(), NoName::Unnamed);
    assert_unnamed(named(b"").as_ref(), NoName::Unnamed);
    assert_unnamed(named(b"192.0.2.1").as_ref(), NoName::Address);
    assert_unnamed(named(b"\x1b[2J").as_ref(), NoName::Refused);
    assert_named(named(b"WWW.Example.COM.").as_ref(), NAME);
    let long = Hello {
        key_share: 4096,
        ..HELLO
    };
    assert_unnamed(of(long).as_ref(), NoName::TooLong);
}

#[test]
fn the_name_may_be_among_the_first_bytes_of_a_long_hello() {
    let application = [b'x'; 250];
    let hello = Hello {
        applications: &[&application[..]; 20],
        ..HELLO
    };
    let message = hello.message();
    let stream = records(&message, 1 << 14);
    assert!(stream.len() > 5000);
    assert_named(read_tcp(&stream).as_ref(), NAME);
    assert_named(read_tcp(&records(&message, 100)).as_ref(), NAME);
    let end = message
        .windows(NAME.len())
        .position(|part| part == NAME.as_bytes());
    let end = end.expect("it has the name") + NAME.len() + 5;
    for length in 1..end {
        assert!(read_tcp(&stream[..length]).is_none(), "{length}");
    }
    assert_named(read_tcp(&stream[..end]).as_ref(), NAME);
    // The length of all extensions does not agree.
    let mut shorter = message;
    shorter[3] -= 1;
    let found = read_tcp(&records(&shorter, 1 << 14));
    assert_unnamed(found.as_ref(), NoName::Malformed);
}

#[test]
fn damaged_hellos_are_refused() {
    let message = HELLO.message();
    let stream = |message: &[u8]| records(message, 1 << 14);
    // Wrong lengths: of the message, and of all extensions.
    let mut shorter = message.clone();
    shorter[3] -= 1;
    assert_unnamed(read_tcp(&stream(&shorter)).as_ref(), NoName::Malformed);
    let mut less = message.clone();
    less[46] -= 1;
    assert_unnamed(read_tcp(&stream(&less)).as_ref(), NoName::Malformed);
    // A ServerHello, a record that is no part of the handshake, an empty record, another version.
    let mut server = message.clone();
    server[0] = 2;
    assert_unnamed(read_tcp(&stream(&server)).as_ref(), NoName::Malformed);
    for spoilt in [
        &[22, 3, 1, 0, 0][..],
        &[22, 2, 1, 0, 9, 1],
        &[22, 3, 1, 0, 1, 1, 21, 3, 1, 0, 2],
    ] {
        assert_unnamed(read_tcp(spoilt).as_ref(), NoName::Malformed);
    }
    // An alert before the hello, which a server may ignore.
    let alert = [21, 3, 1, 0, 2, 1, 90];
    let behind = [&alert[..], &stream(&message)].concat();
    assert_unnamed(read_tcp(&behind).as_ref(), NoName::Malformed);
    // Two names of a host, in one extension or two.
    let twice = [0, 0, 0, 11, 0, 9, 0, 0, 1, b'a', 0, 0, 2, b'b', b'b'];
    let one = [0, 0, 0, 6, 0, 4, 0, 0, 1, b'a'];
    for extensions in [&twice[..], &one.repeat(2)] {
        let unnamed = Hello {
            name: None,
            applications: &[],
            key_share: 0,
            is_encrypted: false,
            ..Hello::NONE
        };
        let mut message = unnamed.message();
        message.truncate(message.len() - 6);
        let length = u8::try_from(extensions.len()).unwrap();
        message.extend([0, length]);
        message.extend(extensions);
        message[3] = u8::try_from(message.len() - 4).unwrap();
        assert_unnamed(read_tcp(&stream(&message)).as_ref(), NoName::Malformed);
    }
}

#[test]
fn other_beginnings_are_told_apart() {
    // SSL 2.0 with the version of TLS 1.0, as old clients sent it.
    let old = [0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10];
    assert_unnamed(read_tcp(&old).as_ref(), NoName::Sslv2);
    assert!(read_tcp(&old[..3]).is_none());
    for foreign in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        &[0x80, 0, 0],
        &[0xff; 20],
        b"\0",
    ] {
        assert_unnamed(read_tcp(foreign).as_ref(), NoName::Foreign);
    }
}
