//! What is fuzzed, and what always holds of it.

use fastrand::Rng;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use loadgen::cli::threshold::{StopLimit, Threshold};
use loadgen::cli::units;
use loadgen::engine::schedule::DueTimes;
use loadgen::grpc::messages::{Messages, read};
use loadgen::http1::cookies::CookieJar;
use loadgen::http1::response::HeadCache;
use loadgen::http3::code::Fault;
use loadgen::http3::qpack::Decoder;
use loadgen::http3::reader::{Kind, Piece, Reader};
use loadgen::http3::{frame, settings};
use loadgen::order::parse::parse;
use loadgen::session::capture::{Capture, Seen, decoded};
use loadgen::session::template::{Encoding, Template};

use super::{Target, fuzz};
use crate::{parser, reader, websocket};

/// Numbers that depend on the input alone.
fn rng_of(bytes: &[u8]) -> Rng {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    Rng::with_seed(bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
}

/// Frames of HTTP/3 and the header fields in them: pieces change nothing.
#[test]
fn frames_of_http3() {
    fuzz(&Target {
        name: "http3",
        runs: 60_000,
        words: &[
            b"\x00",
            b"\x01",
            b"\x04\x00",
            b"\x07\x01\x00",
            b"\x21\x02ab",
            b"\x40\x01",
            b"\xc0\x00\x00\x00",
            b"\xff",
            b"\x00\x00\xd9",
            b"\x50\x81\x1f",
            b"\x29\x1f\x81\x1f",
            b"\x00\x0d",
        ],
        run: |bytes| {
            let mut rng = rng_of(bytes);
            for kind in [Kind::Request, Kind::NewControl] {
                let whole = frames3(kind, &[bytes]);
                let cuts = [rng.usize(..), rng.usize(..), rng.usize(..)];
                assert_eq!(whole, frames3(kind, &parser::split(bytes, &cuts)));
            }
        },
    });
}

/// What is said in frames of HTTP/3, bodies put together.
fn frames3(kind: Kind, pieces: &[&[u8]]) -> (Vec<u8>, Result<(), Fault>) {
    let (mut reader, mut decoder) = (Reader::new(kind), Decoder::default());
    let mut said = Vec::new();
    for piece in pieces {
        let outcome = reader.read(piece, |piece| match piece {
            Piece::Data(data) => {
                said.extend_from_slice(data);
                Ok(())
            }
            Piece::Whole(frame::SETTINGS, payload) => settings::check(payload),
            Piece::Whole(_, payload) => decoder.decode(payload, |name, value| {
                said.extend_from_slice(&[name, b"=", value, b";"].concat());
            }),
        });
        if outcome.is_err() {
            return (said, outcome);
        }
    }
    (said, Ok(()))
}

/// How soon damage is noticed may depend on how an answer is split, not what is taken for one.
#[test]
fn responses() {
    fuzz(&Target {
        name: "response",
        runs: 60_000,
        words: &[
            b"\r\n",
            b"\n",
            b":",
            b"\0",
            b"Content-Length: 9\r\n",
            b"-1",
            b"ffffffff",
            b"\xff",
            b"0",
            b"Transfer-Encoding: chunked\r\n",
            b"Connection: close\r\n",
            b"HTTP/1.1 ",
        ],
        run: |bytes| {
            let mut rng = rng_of(bytes);
            let is_head = rng.bool();
            let mut cache = HeadCache::default();
            let whole = parser::parse(&[bytes], is_head, &mut cache);
            let remembered = parser::parse(&[bytes], is_head, &mut cache);
            assert_eq!(whole, remembered);
            let cuts = [rng.usize(..), rng.usize(..), rng.usize(..)];
            let pieces = parser::split(bytes, &cuts);
            let parted = parser::parse(&pieces, is_head, &mut HeadCache::default());
            assert_eq!(whole.outcome == Ok(true), parted.outcome == Ok(true));
            if whole.outcome == Ok(true) {
                assert_eq!(whole, parted);
            }
        },
    });
}

/// What is heard of frames doesn't depend on how they are split, whether they are sound or not.
#[test]
fn frames() {
    fuzz(&Target {
        name: "frames",
        runs: 60_000,
        words: &[
            b"\0\0\0\x04\0\0\0\0\0",
            b"\0\0\x01\x01\x05\0\0\0\x01\x88",
            b"\0\0\x01\x09\x04\0\0\0\x01\x88",
            b"\0\0\x02\0\x09\0\0\0\x01\x01\0",
            b"\0\0\x05",
            b"\0\0\0\x01",
            b"\xff\xff\xff",
            b"\x3f\xe1\x1f",
            b"\x40\x01a\x01b",
            b"\x40\x81\x1f\x81\x1f",
            b"\xbe",
            b"\0",
            b"\x01",
            b"\x08",
        ],
        run: |bytes| {
            let mut rng = rng_of(bytes);
            let whole = reader::hear(&[bytes]);
            assert!(whole.1.is_err() || whole.1.is_ok_and(|waiting| waiting <= bytes.len()));
            let cuts = [rng.usize(..), rng.usize(..), rng.usize(..)];
            assert_eq!(reader::hear(&parser::split(bytes, &cuts)), whole);
        },
    });
}

/// What is heard of messages doesn't depend on how they are split, whether they are sound or not.
#[test]
fn messages() {
    fuzz(&Target {
        name: "messages",
        runs: 60_000,
        words: &[
            b"\x81\x02hi",
            b"\x01\x01a",
            b"\x80\x01b",
            b"\x89\0",
            b"\x88\x02\x03\xe8",
            b"\x82\x7e\x01\0",
            b"\x82\x7f\0\0\0\0\0\x01\0\0",
            b"\xff\xff\xff\xff",
            b"\0",
            b"\x7f",
        ],
        run: |bytes| {
            let mut rng = rng_of(bytes);
            let cuts = [rng.usize(..), rng.usize(..), rng.usize(..)];
            assert_eq!(websocket::hear(&parser::split(bytes, &cuts)), websocket::hear(&[bytes]));
        },
    });
}

/// Messages of gRPC end where they end, however they are split; what can be read is what was counted.
#[test]
fn calls() {
    fuzz(&Target {
        name: "calls",
        runs: 30_000,
        words: &[
            b"\0\0\0\0\x02hi",
            b"\0\0\0\0\0",
            b"\x01\0\0\0\x02",
            b"\0\xff\xff\xff\xff",
            b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
            b"\x01",
            b"\0",
        ],
        run: |bytes| {
            let mut rng = rng_of(bytes);
            let hear = |pieces: &[&[u8]]| {
                let mut messages = Messages::default();
                let ended: u32 = pieces.iter().map(|piece| messages.feed(piece)).sum();
                (ended, messages.are_whole(), messages.are_compressed(), messages.are_odd())
            };
            let whole = hear(&[bytes]);
            let cuts = [rng.usize(..), rng.usize(..), rng.usize(..)];
            assert_eq!(hear(&parser::split(bytes, &cuts)), whole);
            if let Ok(messages) = read(bytes, 1 << 20) {
                assert_eq!((messages.len(), true), (whole.0 as usize, whole.1));
            }
        },
    });
}

/// A refusal says something, and what is accepted has a timetable that ascends.
#[test]
fn orders() {
    fuzz(&Target {
        name: "order",
        runs: 6_000,
        words: &[
            b"{}",
            b"[]",
            b"null",
            b"-1",
            b"1e308",
            b"0",
            b"\"",
            b"18446744073709551615",
            b",",
            b"}",
            b"\"count\":2,",
            b"\"for_s\":1e-9,",
            b"\"zipf\":1,",
            b"\xff",
            b"{{a}}",
        ],
        run: |bytes| {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            match parse(text) {
                Err(error) => assert!(!error.message.is_empty()),
                Ok(order) => {
                    let Some(arrivals) = &order.load.arrivals else { return };
                    let due_times: Vec<_> =
                        DueTimes::new(arrivals, order.count, order.seed).take(5).collect();
                    assert!(due_times.is_sorted_by_key(|due| (due.at_ns, due.number)));
                    assert!(order.count.is_none_or(|count| due_times.len() as u64 <= count));
                }
            }
        },
    });
}

/// What is sent back is one field, of bounded length.
#[test]
fn cookies() {
    fuzz(&Target {
        name: "cookies",
        runs: 10_000,
        words: &[
            b"Set-Cookie: ",
            b"; Path=/",
            b"; Max-Age=",
            b"=",
            b";",
            b"\r\n",
            b"\n",
            b"\0",
            b"\xc3",
            b"99999999999999999999",
            b"; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        ],
        run: |bytes| {
            let mut jar = CookieJar::default();
            for path in ["/", "/app/x?y", ""] {
                jar.keep(bytes, path);
                let mut field = Vec::new();
                let any = jar.write(path, b"cookie: ", &mut field);
                assert_eq!(any, !field.is_empty());
                assert!(!field.contains(&b'\n') && field.len() < 50 * 4100);
            }
            jar.value(bytes);
        },
    });
}

/// The first line says what is taken out of the answer behind it.
#[test]
fn extraction() {
    fuzz(&Target {
        name: "extraction",
        runs: 6_000,
        words: &[
            b"<",
            b">",
            b"</",
            b"<!--",
            b"\"",
            b"'",
            b"&#x",
            b"&amp;",
            b"[",
            b"]",
            b"$.",
            b"(",
            b"{9}",
            b"\\u",
            b"\n",
            b"\r\n\r\n",
            b"<script>",
            b"\xff",
            b"Content-Encoding: deflate\r\n",
        ],
        run: |bytes| {
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let Ok(wanted) = serde_json::from_slice(line) else { return };
            let Ok(capture) = Capture::new(0, "it", &wanted) else { return };
            let answer = &bytes[(line.len() + 1).min(bytes.len())..];
            let end = answer.windows(4).position(|it| it == b"\r\n\r\n").map_or(0, |at| at + 4);
            let (head, body) = answer.split_at(end);
            let mut jar = CookieJar::default();
            jar.keep(head, "/");
            if let Ok(body) = decoded(head, body) {
                capture.find(&Seen { head, body: &body, jar: &jar });
            }
        },
    });
}

/// No value ends a line of a head.
#[test]
fn templates() {
    fuzz(&Target {
        name: "template",
        runs: 10_000,
        words: &[b"{{", b"}}", b"{{a}}", b"{{ a }}", b"{{row.b}}", b" ", b"\r\n"],
        run: |bytes| {
            let names = ["a".to_owned(), "row.b".to_owned()];
            for usual in [Encoding::Raw, Encoding::Field, Encoding::Url, Encoding::Link] {
                let template = Template::parse(bytes, usual, &names);
                let (mut with, mut without) = (Vec::new(), Vec::new());
                template.write(&[bytes.to_vec(), b"B".to_vec()], &mut with);
                template.write(&[Vec::new(), Vec::new()], &mut without);
                assert!(without.len() <= bytes.len() + 16);
            }
        },
    });
}

#[test]
fn flags() {
    fuzz(&Target {
        name: "flags",
        runs: 30_000,
        words: &[
            b":",
            b"-",
            b">",
            b"%",
            b"ms",
            b"1e999",
            b"nan",
            b"[",
            b"]",
            b",",
            b" ",
            b"\xc3\xa9",
        ],
        run: |bytes| {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            let seconds = units::seconds::<3600>(text).unwrap_or(0.0);
            assert!((0.0..=3600.0).contains(&seconds));
            let _ = units::stage(text).map(|stage| assert!(stage.for_s > Some(0.0)));
            let _ = units::sources(text).map(|sources| assert!(!sources.0.is_empty()));
            let _ = units::cpus(text).map(|cpus| assert!(!cpus.0.is_empty()));
            let _ = (units::header(text), units::connect_to(text), units::resolve(text));
            let limit: Result<Threshold, _> = text.parse();
            assert!(limit.is_ok() || text.parse::<StopLimit>().is_err());
        },
    });
}

/// Results of others are merged.
#[test]
fn histograms() {
    fuzz(&Target {
        name: "histogram",
        // A damaged head may ask for much memory.
        runs: 300,
        words: &[
            b"\0\0\0\0",
            b"\xff\xff\xff\xff",
            b"\x1c\x84\x93\x13",
            b"\x80\x80\x80\x80",
            b"\x7f",
        ],
        run: |mut bytes| {
            let decoded: Result<Histogram<u64>, _> = Deserializer::new().deserialize(&mut bytes);
            let _ = decoded.map(|histogram| histogram.iter_recorded().count());
        },
    });
}
