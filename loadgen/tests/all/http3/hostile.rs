//! Servers that break the rules of HTTP/3, or ask too much: every request has a fate, and nothing
//! hangs or grows without end.

use std::time::{Duration, Instant};

use serde_json::json;

use super::failures::all_fail;
use super::{BODY, COUNT, order3};
use crate::layers::quic::{Begins, Quic, data, framed, head};
use crate::support::{expect, number, run};

/// A server whose control stream says this, and that answers well.
fn controlling(control: &'static [u8]) -> Quic {
    let begins = Begins { control, ..Begins::default() };
    Quic::beginning(begins, |mut session| session.answer_all(BODY))
}

/// Whatever it is told about the connection, no request hangs, and the reason is said.
fn breaks_rule(server: &Quic, name: &str) {
    let mut order = order3(server, COUNT);
    order["load"]["timeout_s"] = json!(1.0);
    order["duration_s"] = json!(1.0);
    let result = run(&order);
    let text = result["failure_samples"].to_string();
    assert!(text.contains(name), "{name}: {result:#}");
}

#[test]
fn control_streams_have_rules() {
    for (control, name) in [
        (&[0, 7, 1, 0][..], "H3_MISSING_SETTINGS"),
        (&[0, 4, 0, 4, 0], "H3_FRAME_UNEXPECTED"),
        (&[0, 4, 4, 6, 0x40, 100, 6], "H3_FRAME_ERROR"),
        (&[0, 4, 4, 6, 1, 6, 1], "H3_SETTINGS_ERROR"),
        (&[0, 4, 2, 4, 1], "H3_SETTINGS_ERROR"),
        (&[0, 4, 0, 0, 1, 1], "H3_FRAME_UNEXPECTED"),
        (&[0, 4, 0, 6, 1, 1], "H3_FRAME_UNEXPECTED"),
        (&[0, 4, 0, 7, 1, 3], "H3_ID_ERROR"),
        (&[0, 4, 0, 7, 0x80, 0x10, 0, 0], "H3_EXCESSIVE_LOAD"),
        (&[1, 0], "H3_ID_ERROR"),
        (&[2, 0x3f, 0xe1, 0x1f], "QPACK_ENCODER_STREAM_ERROR"),
    ] {
        breaks_rule(&controlling(control), name);
    }
    // Nobody has to wait for settings.
    let silent = controlling(&[]);
    expect(&run(&order3(&silent, COUNT)), &[("/requests/completed", COUNT)]);
}

#[test]
fn streams_that_the_connection_needs_are_not_closed() {
    let closed = Quic::beginning(Begins { control: &[], ..Begins::default() }, |mut session| {
        session.open(&[0, 4, 0], true);
        session.answer_all(BODY);
    });
    breaks_rule(&closed, "H3_CLOSED_CRITICAL_STREAM");
    let twice = Quic::start(|mut session| {
        session.open(&[0, 4, 0], false);
        session.answer_all(BODY);
    });
    breaks_rule(&twice, "H3_STREAM_CREATION_ERROR");
}

#[test]
fn frames_in_the_wrong_place_end_the_connection() {
    for (bytes, name) in [
        (framed(4, &[]), "H3_FRAME_UNEXPECTED"),
        (framed(7, &[0]), "H3_FRAME_UNEXPECTED"),
        (framed(2, b"push"), "H3_FRAME_UNEXPECTED"),
        (framed(5, &[0, 0, 0]), "H3_ID_ERROR"),
        ([head(200, None), data(BODY), head(200, None)].concat(), "trailers"),
        (framed(1, &[1, 0, 0xd9]), "QPACK_DECOMPRESSION_FAILED"),
        (framed(1, &[0, 0, 0x80]), "QPACK_DECOMPRESSION_FAILED"),
        ([head(200, Some(13)), vec![0, 13, b'H']].concat(), "H3_FRAME_ERROR"),
        (vec![1], "H3_FRAME_ERROR"),
        (vec![1, 0x80, 0x10, 0, 0], "H3_EXCESSIVE_LOAD"),
    ] {
        let server = Quic::start(move |mut session| {
            while let Some(id) = session.request() {
                session.write(id, &bytes, true);
            }
        });
        all_fail(&server, "malformed", name);
    }
}

/// Short on the wire, and long when it is decoded.
#[test]
fn heads_have_a_limit() {
    let server = Quic::start(|mut session| {
        while let Some(id) = session.request() {
            let mut section = vec![0, 0, 0xd9];
            section.resize(10_000, 0xd9);
            session.write(id, &framed(1, &section), true);
        }
    });
    all_fail(&server, "malformed", "too long");
}

#[test]
fn streams_without_end_are_not_read_for_ever() {
    let server = Quic::start(|mut session| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(3) {
            for _ in 0..50 {
                session.open(&[0x21, 1, 2, 3], true);
            }
            std::thread::sleep(Duration::from_millis(1));
            if session.number > 1 {
                break;
            }
        }
        session.answer_all(BODY);
    });
    let mut order = order3(&server, COUNT);
    order["load"]["timeout_s"] = json!(2.0);
    let began = Instant::now();
    let result = run(&order);
    assert!(number(&result, "/requests/sent") == COUNT, "{result:#}");
    assert!(began.elapsed() < Duration::from_secs(30));
}

/// Bodies that never end are cut off by the timeout.
#[test]
fn bodies_without_end_time_out() {
    let server = Quic::start(|mut session| {
        while let Some(id) = session.request() {
            session.write(id, &head(200, None), false);
            for _ in 0..200 {
                session.write(id, &data(&[b'x'; 10_000]), false);
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    });
    let mut order = order3(&server, 4);
    order["load"]["timeout_s"] = json!(1.0);
    let result = run(&order);
    expect(&result, &[("/failures/timeout", 4), ("/requests/completed", 0)]);
}

/// The request's end is not awaited by a server that answers at once.
#[test]
fn early_answers_to_long_requests_count() {
    let server = Quic::start(|mut session| {
        // Requests are told of at their ends, so this one acts on streams by their numbers.
        for nth in 0..3_u64 {
            std::thread::sleep(Duration::from_millis(100));
            session.act(move |quic, _| {
                let id = quinn_proto::StreamId::new(
                    quinn_proto::Side::Client,
                    quinn_proto::Dir::Bi,
                    nth,
                );
                let _ = quic.recv_stream(id).stop(quinn_proto::VarInt::from_u32(0x100));
                let bytes = [head(413, Some(13)), data(BODY)].concat();
                let _ = quic.send_stream(id).write(&bytes);
                let _ = quic.send_stream(id).finish();
            });
        }
        while session.request().is_some() {}
    });
    let load = server.load(json!({"timeout_s": 2.0}));
    let mut order = crate::support::order(&server.url(), 3, load);
    order["requests"][0]["method"] = json!("POST");
    order["requests"][0]["body"] = json!("y".repeat(20_000_000));
    order["requests"][0]["expect"] = json!({"status": [413]});
    let result = run(&order);
    expect(&result, &[("/requests/completed", 3), ("/by_status/413", 3)]);
}
