//! How requests are sent over HTTP/2: within the windows and sizes that a server allows.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use httlib_hpack::Decoder;
use serde_json::{Value, json};

use super::{BODY, server};
use crate::layers::frames::{
    CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADER_TABLE_SIZE, HEADERS,
    INITIAL_WINDOW_SIZE, NO_ERROR, RST_STREAM,
};
use crate::layers::http2;
use crate::support::{expect, order, run};

const MOST_BYTES: usize = 16_384;
/// The window of a connection until it is opened further.
const CONNECTION_BYTES: usize = 65_535;

/// An order that posts a body.
fn post(url: &str, count: u64, bytes: usize, streams: u32) -> Value {
    let mut order = order(url, count, http2(1, streams));
    order["requests"][0]["method"] = json!("POST");
    order["requests"][0]["body"] = json!(body(bytes));
    order
}

fn body(bytes: usize) -> String {
    (0..bytes).map(|at| char::from(b'a' + (at % 26) as u8)).collect()
}

#[test]
fn bodies_keep_to_the_windows_of_their_streams() {
    let server = server(&[(INITIAL_WINDOW_SIZE, 10)], |mut frames, _| {
        for step in [7, 1000, 100_000] {
            let Some(id) = frames.request() else { return };
            let (mut window, mut got) = (10, Vec::new());
            loop {
                let data = frames.next_of(DATA).expect("more of the body");
                assert!(data.payload.len() <= window.min(MOST_BYTES), "{}", data.payload.len());
                window -= data.payload.len();
                got.extend_from_slice(&data.payload);
                if data.flags & END_STREAM != 0 {
                    break;
                }
                if window == 0 {
                    frames.window(0, step);
                    frames.window(id, step);
                    window += step as usize;
                }
            }
            assert_eq!(got, body(30_000).as_bytes());
            frames.answer(id, BODY);
        }
        while frames.next().is_some() {}
    });
    expect(&run(&post(&server.url(), 3, 30_000, 1)), &[("/requests/completed", 3)]);
}

#[test]
fn a_window_may_be_changed_while_a_body_is_sent() {
    let server = server(&[(INITIAL_WINDOW_SIZE, 0)], |mut frames, _| {
        while let Some(id) = frames.request() {
            let mut window = 0;
            let mut got = 0;
            for (initial, more) in [(100, 0), (50, 60), (200, 0), (1 << 20, 0)] {
                frames.settings(&[(INITIAL_WINDOW_SIZE, initial)]);
                if more > 0 {
                    frames.window(id, more);
                }
                window += more as usize;
                let wanted = (window + initial as usize).min(1000);
                while got < wanted {
                    got += frames.next_of(DATA).expect("more of the body").payload.len();
                }
                assert_eq!(got, wanted);
            }
            frames.settings(&[(INITIAL_WINDOW_SIZE, 0)]);
            frames.answer(id, BODY);
        }
    });
    expect(&run(&post(&server.url(), 3, 1000, 1)), &[("/requests/completed", 3)]);
}

#[test]
fn bodies_share_the_window_of_their_connection() {
    let server = server(&[], |mut frames, _| {
        let (mut granted, mut got, mut ended) = (CONNECTION_BYTES, 0, Vec::new());
        while ended.len() < 3 {
            let data = frames.next_of(DATA).expect("more of the bodies");
            got += data.payload.len();
            assert!(got <= granted, "{got} of {granted}");
            if data.flags & END_STREAM != 0 {
                ended.push(data.id);
            }
            if got == granted {
                frames.window(0, 5000);
                granted += 5000;
            }
        }
        assert_eq!(got, 3 * 40_000);
        ended.into_iter().for_each(|id| frames.answer(id, BODY));
        while frames.next().is_some() {}
    });
    expect(&run(&post(&server.url(), 3, 40_000, 3)), &[("/requests/completed", 3)]);
}

/// What nobody waits for any more is not sent (RFC 9113 section 8.1).
#[test]
fn an_answer_may_come_before_the_request_is_sent() {
    let server = server(&[(INITIAL_WINDOW_SIZE, 5)], |mut frames, _| {
        while let Some(id) = frames.request() {
            frames.answer(id, BODY);
            frames.reset(id, NO_ERROR);
            let cancelled = frames.next_of(RST_STREAM).expect("no more of it");
            assert_eq!((cancelled.id, &cancelled.payload[..]), (id, &CANCEL.to_be_bytes()[..]));
        }
    });
    let result = run(&post(&server.url(), 10, 100, 1));
    expect(&result, &[("/requests/completed", 10), ("/connections/opened", 1)]);
}

#[test]
fn long_heads_come_in_pieces() {
    let long = body(40_000);
    let wanted = long.clone();
    let server = server(&[], move |mut frames, _| {
        while let Some(mut frame) = frames.next_of(HEADERS) {
            assert_eq!(frame.flags, END_STREAM);
            let mut block = frame.payload;
            while frame.flags & END_HEADERS == 0 {
                frame = frames.next().expect("more of the head");
                assert!(frame.kind == CONTINUATION && frame.payload.len() <= MOST_BYTES);
                block.extend_from_slice(&frame.payload);
            }
            let mut fields = Vec::new();
            Decoder::default().decode(&mut block, &mut fields).expect("a list");
            let long = fields.iter().find(|(name, ..)| name == b"x-long");
            assert!(long.is_some_and(|(_, value, _)| value == wanted.as_bytes()));
            frames.answer(frame.id, BODY);
        }
    });
    let mut order = order(&server.url(), 10, http2(1, 2));
    order["requests"][0]["headers"] = json!({"X-Long": long});
    expect(&run(&order), &[("/requests/completed", 10)]);
}

/// RFC 7541 section 4.2.
#[test]
fn a_server_without_a_table_is_told_that_there_is_none() {
    let begins = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&begins);
    let server = server(&[(HEADER_TABLE_SIZE, 0)], move |mut frames, _| {
        while let Some(frame) = frames.next_of(HEADERS) {
            seen.lock().expect("no panic").push(frame.payload[0]);
            frames.answer(frame.id, BODY);
        }
    });
    expect(&run(&order(&server.url(), 3, http2(1, 1))), &[("/requests/completed", 3)]);
    assert_eq!(*begins.lock().expect("no panic"), [0x20, 0x82, 0x82]);
}

/// RFC 9113 section 6.8.
#[test]
fn a_server_is_told_that_no_more_requests_come() {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let server = server(&[], move |mut frames, _| {
        for _ in 0..5 {
            let Some(id) = frames.request() else { return };
            frames.answer(id, BODY);
        }
        let payload = frames.next_of(GOAWAY).map(|frame| frame.payload);
        tell.lock().expect("no panic").send(payload).expect("somebody listens");
    });
    let mut order = order(&server.url(), 20, http2(1, 2));
    order["load"]["keepalive"] = json!(5);
    expect(&run(&order), &[("/requests/completed", 20), ("/connections/opened", 4)]);
    for _ in 0..4 {
        let payload = told.recv_timeout(Duration::from_secs(10)).expect("a word");
        assert_eq!(payload, Some(vec![0; 8]));
    }
}
