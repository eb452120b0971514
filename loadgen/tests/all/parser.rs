//! The response parser: any split gives the same answer, and no bytes whatever make it panic,
//! hang or claim more than it was given.

use loadgen::http1::head::{Asked, Malformed};
use loadgen::http1::response::{HeadCache, Response};
use proptest::collection::vec;
use proptest::prelude::*;

/// What came of parsing.
#[derive(Debug, PartialEq)]
pub struct Parsed {
    pub outcome: Result<bool, Malformed>,
    status: u16,
    used: usize,
    head_bytes: u64,
    body: Vec<u8>,
    keep_alive: bool,
}

pub fn parse(pieces: &[&[u8]], asked_head: bool, cache: &mut HeadCache) -> Parsed {
    let mut response = Response::default();
    response.reset(Asked { head: asked_head, upgrade: false }, false);
    let mut body = Vec::new();
    let (mut used, mut error) = (0, None);
    for piece in pieces {
        match response.feed(piece, cache, |data| body.extend_from_slice(data)) {
            Ok(count) => {
                assert!(count == piece.len() || response.is_done(), "stopped without being done");
                used += count;
            }
            Err(malformed) => {
                error = Some(malformed);
                break;
            }
        }
        if response.is_done() {
            break;
        }
    }
    assert_eq!(response.body_bytes, body.len() as u64);
    let outcome = match error {
        Some(malformed) => Err(malformed),
        None => Ok(response.end_of_stream()),
    };
    let (status, keep_alive) = (response.status, response.keep_alive);
    Parsed { outcome, status, used, head_bytes: response.head_bytes, body, keep_alive }
}

/// Splits `bytes` after the given positions.
pub fn split<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut pieces = Vec::new();
    let mut begin = 0;
    for end in ends.into_iter().filter(|end| *end > 0) {
        if end > begin {
            pieces.push(&bytes[begin..end]);
            begin = end;
        }
    }
    pieces
}

fn field() -> impl Strategy<Value = String> {
    ("[A-Za-z-]{1,20}", "[ -~]{0,40}").prop_map(|(name, value)| format!("X-{name}: {value}\r\n"))
}

prop_compose! {
    /// A well-formed answer with its body.
    fn answer()(
        interim in 0..3usize,
        fields in vec(field(), 0..30),
        body in vec(any::<u8>(), 0..400),
        chunk in 1..50usize,
        framing in 0..3u8,
        extension in "[a-z]{0,5}",
        close in any::<bool>(),
    ) -> (Vec<u8>, Vec<u8>) {
        let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(interim);
        bytes.extend(b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 20:24:09 GMT\r\n");
        fields.iter().for_each(|field| bytes.extend(field.as_bytes()));
        if close {
            bytes.extend(b"Connection: close\r\n");
        }
        match framing {
            0 => bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes()),
            1 => bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n"),
            _ => bytes.extend(b"\r\n"),
        }
        if framing == 1 {
            for part in body.chunks(chunk) {
                bytes.extend(format!("{:x};{extension}\r\n", part.len()).as_bytes());
                bytes.extend(part);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\nTrailer: x\r\n\r\n");
        } else {
            bytes.extend(&body);
        }
        (bytes, body)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_answer((bytes, body) in answer(), cuts in vec(any::<usize>(), 0..12)) {
        let mut cache = HeadCache::default();
        let whole = parse(&[&bytes], false, &mut cache);
        prop_assert_eq!(&whole.outcome, &Ok(true));
        prop_assert_eq!(&whole.body, &body);
        prop_assert_eq!(whole.used, bytes.len());
        let pieces = split(&bytes, &cuts);
        // With the head remembered, and with none.
        prop_assert_eq!(&parse(&pieces, false, &mut cache), &whole);
        prop_assert_eq!(&parse(&pieces, false, &mut HeadCache::default()), &whole);
        let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&parse(&bytewise, false, &mut cache), &whole);
    }

    #[test]
    fn a_remembered_head_never_changes_the_answer((first, _) in answer(), (second, _) in answer()) {
        let mut cache = HeadCache::default();
        parse(&[&first], false, &mut cache);
        let with = parse(&[&second], false, &mut cache);
        prop_assert_eq!(with, parse(&[&second], false, &mut HeadCache::default()));
    }
}
