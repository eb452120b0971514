//! The reader of messages: any split is heard alike, and no bytes whatever make it panic or claim
//! more than it was given.

use loadgen::http1::head::{Asked, Malformed};
use loadgen::http1::response::{HeadCache, Response};
use loadgen::websocket::frame::{self, Fault, Kind};
use loadgen::websocket::messages::Messages;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::layers::websocket::{BINARY, CLOSE, KINDS, PING, PONG, TEXT, frame as served};
use crate::parser::split;

/// What was heard of a server that was asked for one message.
#[derive(Debug, PartialEq)]
pub struct Heard {
    fault: Option<Malformed>,
    message: Vec<u8>,
    is_whole: bool,
    head_bytes: u64,
    farewell: Option<String>,
    pongs: Vec<u8>,
}

/// Hears pieces until something is wrong with one.
pub fn hear(pieces: &[&[u8]]) -> Heard {
    let mut response = Response::default();
    response.switch(Messages::new([1, 2, 3, 4]));
    response.reset(Asked::default(), false);
    let (mut message, mut fault) = (Vec::new(), None);
    for piece in pieces {
        let cache = &mut HeadCache::default();
        match response.feed(piece, cache, |data| message.extend_from_slice(data)) {
            Ok(count) => assert_eq!(count, piece.len()),
            Err(malformed) => {
                fault = Some(malformed);
                break;
            }
        }
    }
    assert_eq!(response.body_bytes, message.len() as u64);
    let farewell = response.farewell().map(ToString::to_string);
    let (is_whole, head_bytes) = (response.is_done(), response.head_bytes);
    let mut pongs = Vec::new();
    let messages = response.messages.as_mut().expect("a WebSocket");
    messages.send_pongs(|bytes| {
        pongs.extend_from_slice(bytes);
        bytes.len()
    });
    Heard { fault, message, is_whole, head_bytes, farewell, pongs }
}

fn whole(bytes: &[u8]) -> Heard {
    hear(&[bytes])
}

fn fault(bytes: &[u8]) -> Option<Fault> {
    match whole(bytes).fault {
        Some(Malformed::Frame(fault)) => Some(fault),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_come_in_frames_of_any_length_and_number() {
    for length in [0, 1, 125, 126, 65_535, 65_536, 200_000] {
        let payload = vec![b'x'; length];
        for first in [TEXT, BINARY] {
            let heard = whole(&served(first, &payload));
            assert!(heard.is_whole && heard.message == payload, "{length}");
        }
    }
    let parts =
        [served(0x01, b"a"), served(PING, b"!"), served(0x00, b""), served(0x80, b"bc")].concat();
    let heard = whole(&[&parts[..], &served(PONG, b"unasked")].concat());
    assert_eq!((heard.is_whole, &heard.message[..], heard.fault), (true, &b"abc"[..], None));
    assert_eq!(heard.pongs, frame::masked(Kind::Pong, b"!", [1, 2, 3, 4]));
    assert_eq!(heard.head_bytes, 6);
}

#[test]
fn wrong_frames_are_known() {
    for (bytes, wanted) in [
        (&[0xc1, 0][..], Fault::Reserved),
        (&[0x83, 0], Fault::Kind),
        (&[0x8b], Fault::Kind),
        (&[TEXT, 0x80], Fault::Masked),
        (&[TEXT, 126, 0, 125], Fault::Length),
        (&[TEXT, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff], Fault::Length),
        (&[TEXT, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], Fault::Length),
        (&[PING, 126], Fault::Control),
        (&[0x09], Fault::Control),
        (&[0x80, 0], Fault::Continuation),
        (&[0x01, 0, TEXT, 0], Fault::Within),
        (&[CLOSE, 1, 3], Fault::Close),
        (&[CLOSE, 2, 3, 0xed], Fault::Close),
        (&[TEXT, 0, TEXT, 0], Fault::Unasked),
        (&[TEXT, 0, 0x01, 0], Fault::Unasked),
    ] {
        assert_eq!(fault(bytes), Some(wanted), "{bytes:?}");
    }
    let huge = [&[TEXT, 127][..], &i64::MAX.to_be_bytes(), b"some"].concat();
    assert!(!whole(&huge).is_whole && fault(&huge).is_none());
}

#[test]
fn what_follows_a_farewell_says_nothing() {
    let heard = whole(&[&served(CLOSE, b"\x03\xe8ok")[..], &[0xff; 9]].concat());
    let wanted = "the server closed the WebSocket: 1000 normal closure (ok)";
    assert_eq!((heard.fault, heard.farewell.as_deref()), (None, Some(wanted)));
}

#[test]
fn who_reads_no_pongs_gets_no_more_of_them() {
    let pings = served(PING, &[7; 125]).repeat(10_000);
    let heard = whole(&pings);
    assert!(heard.fault.is_none() && heard.pongs.len() <= 4096, "{}", heard.pongs.len());
}

/// Takes the mask off, as a server does.
fn unmasked(frame: &[u8]) -> Vec<u8> {
    let length_bytes = match frame[1] & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let (head, rest) = frame.split_at(2 + length_bytes);
    let (key, payload) = rest.split_at(4);
    let mut plain = [&[head[0], head[1] & 0x7f], &head[2..]].concat();
    plain.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    plain
}

/// A frame of a server, now and then a wrong one.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let firsts = prop_oneof![
        Just(TEXT),
        Just(BINARY),
        Just(CLOSE),
        Just(PING),
        Just(PONG),
        Just(0x01),
        Just(0x02),
        Just(0x00),
        Just(0x80),
        any::<u8>(),
    ];
    let payload = prop_oneof![vec(any::<u8>(), 0..20), vec(any::<u8>(), 120..300)];
    (firsts, payload).prop_map(|(first, payload)| served(first, &payload))
}

proptest! {
    #[test]
    fn any_split_is_heard_alike(frames in vec(any_frame(), 0..8), cuts in vec(any::<usize>(), 0..8)) {
        let bytes = frames.concat();
        prop_assert_eq!(hear(&split(&bytes, &cuts)), whole(&bytes));
    }

    #[test]
    fn byte_by_byte_is_heard_alike(frames in vec(any_frame(), 0..4)) {
        let bytes = frames.concat();
        let pieces: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(hear(&pieces), whole(&bytes));
    }

    #[test]
    fn ours_are_masked_and_of_the_shortest_length(
        payload in prop_oneof![vec(any::<u8>(), 0..300), vec(any::<u8>(), 65_500..65_600)],
        key in any::<[u8; 4]>(),
    ) {
        for (first, kind) in KINDS {
            let frame = frame::masked(kind, &payload, key);
            prop_assert!(frame[1] & 0x80 != 0);
            prop_assert_eq!(unmasked(&frame), served(first, &payload));
        }
    }
}
