//! What servers may do in HTTP/2, and what breaks its rules.

use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::json;

use super::failures::all_fail;
use super::{BODY, COUNT, server};
use crate::layers::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_SIZE_ERROR, Frames, GOAWAY, HEADERS,
    NO_ERROR, PADDED, PING, PRIORITY, PROTOCOL_ERROR, PUSH_PROMISE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, WITH_PRIORITY,
};
use crate::layers::http2;
use crate::support::{expect, order, run};

type Answer = fn(&mut Frames<TcpStream>, u32);

/// `:status: 200`, which the static table has.
const OK: &[u8] = &[0x88];

/// Each answer is whole, and has the usual body.
const ALLOWED: [(&str, Answer); 11] = [
    ("padding and priority", |frames, id| {
        let head = [&[3, 0, 0, 0, 0, 9][..], OK, &[0; 3]].concat();
        frames.frame(HEADERS, END_HEADERS | PADDED | WITH_PRIORITY, id, &head);
        let body = [&[7][..], BODY, &[0; 7]].concat();
        frames.frame(DATA, END_STREAM | PADDED, id, &body);
    }),
    ("a head in pieces", |frames, id| {
        frames.frame(HEADERS, 0, id, &OK[..0]);
        frames.frame(CONTINUATION, 0, id, OK);
        frames.frame(CONTINUATION, END_HEADERS, id, &[0x00, 1, b'a', 0]);
        frames.data(id, BODY, true);
    }),
    ("preliminary answers", |frames, id| {
        frames.fields(id, &[(":status", "100")], false);
        frames.fields(id, &[(":status", "103"), ("link", "</a>")], false);
        frames.answer(id, BODY);
    }),
    ("trailers", |frames, id| {
        frames.head(id, 200, Some(BODY.len()), false);
        frames.data(id, BODY, false);
        frames.fields(id, &[("a", "b")], true);
    }),
    ("a body in pieces, the last one empty", |frames, id| {
        frames.head(id, 200, Some(BODY.len()), false);
        BODY.chunks(1).for_each(|piece| frames.data(id, piece, false));
        frames.data(id, &[], true);
    }),
    ("other frames in between", |frames, id| {
        frames.frame(99, 0xff, id, b"unknown");
        frames.frame(PRIORITY, 0, id + 1000, &[0; 5]);
        frames.head(id, 200, None, false);
        frames.settings(&[(0x99, 1)]);
        frames.window(0, 1);
        frames.window(id, 1);
        frames.data(id, BODY, true);
        frames.window(id, 1);
    }),
    ("a ping, which is answered", |frames, id| {
        frames.frame(PING, 0, 0, b"anything");
        let answer = frames.next_of(PING).expect("an answer");
        assert_eq!((answer.flags, &answer.payload[..]), (ACK, &b"anything"[..]));
        frames.answer(id, BODY);
    }),
    ("a table that both sides keep", |frames, id| {
        // Its size again, an entry in Huffman's code, and its number.
        let block =
            [&[0x3f, 0xe1, 0x1f][..], OK, &[0x40, 0x81, 0x1f, 0x82, 0x1c, 0x7f, 0xbe]].concat();
        frames.frame(HEADERS, END_HEADERS, id, &block);
        frames.data(id, BODY, true);
    }),
    ("the rest of the request is not wanted", |frames, id| {
        frames.head(id, 200, Some(BODY.len()), false);
        frames.data(id, BODY, false);
        frames.reset(id, NO_ERROR);
    }),
    ("a reset after the end", |frames, id| {
        frames.answer(id, BODY);
        frames.reset(id, NO_ERROR);
    }),
    ("something on a stream that is over", |frames, id| {
        frames.answer(id, BODY);
        frames.data(id, b"more", false);
    }),
];

#[test]
fn what_servers_may_do() {
    for (what, answer) in ALLOWED {
        let server = server(&[], move |mut frames, _| {
            while let Some(id) = frames.request() {
                answer(&mut frames, id);
            }
        });
        let mut order = order(&server.url(), 10, http2(1, 1));
        order["requests"][0]["expect"] = json!({"body_bytes": BODY.len()});
        let result = run(&order);
        assert_eq!(result["requests"]["completed"], 10, "{what}: {result:#}");
        expect(&result, &[("/connections/opened", 1)]);
    }
}

/// Nothing can be made of what follows, so that the connection ends.
const BROKEN: [(&str, Answer); 19] = [
    ("a frame that is too large", |frames, id| frames.data(id, &[0; 20_000], true)),
    ("data on the connection", |frames, _| frames.data(0, BODY, true)),
    ("data on a stream that nobody opened", |frames, id| frames.data(id + 200_000, BODY, true)),
    ("data on a stream of the server's", |frames, _| frames.data(2, BODY, true)),
    ("an absurd stream", |frames, _| frames.head(u32::MAX, 200, None, true)),
    ("data with more padding than there is", |frames, id| {
        frames.frame(DATA, PADDED, id, &[3, 0, 0]);
    }),
    ("a head with more padding than there is", |frames, id| {
        frames.frame(HEADERS, PADDED | END_HEADERS, id, &[3, 0, 0]);
    }),
    ("a head that goes on nowhere", |frames, id| {
        frames.frame(HEADERS, 0, id, OK);
        frames.data(id, BODY, true);
    }),
    ("something that goes on from nothing", |frames, id| {
        frames.frame(CONTINUATION, END_HEADERS, id, OK);
    }),
    ("fields that are in no table", |frames, id| {
        frames.frame(HEADERS, END_HEADERS, id, &[0xff, 0])
    }),
    ("a push", |frames, id| frames.frame(PUSH_PROMISE, END_HEADERS, id, &[0, 0, 0, 2, 0x82])),
    ("settings of a strange length", |frames, _| frames.frame(SETTINGS, 0, 0, &[0; 7])),
    ("settings on a stream", |frames, id| frames.frame(SETTINGS, 0, id, &[])),
    ("a window that is too large", |frames, _| frames.settings(&[(4, u32::MAX)])),
    ("frames that are too small", |frames, _| frames.settings(&[(5, 100)])),
    ("a window opened by nothing", |frames, _| frames.window(0, 0)),
    ("a window opened too far", |frames, _| frames.window(0, (1 << 31) - 1)),
    ("a short ping", |frames, _| frames.frame(PING, 0, 0, b"short")),
    ("a short farewell", |frames, _| frames.frame(GOAWAY, 0, 0, &[0; 7])),
];

#[test]
fn what_breaks_the_rules_ends_the_connection() {
    for (what, answer) in BROKEN {
        let server = server(&[], move |mut frames, _| {
            if let Some(id) = frames.request() {
                answer(&mut frames, id);
            }
            while frames.next().is_some() {}
        });
        let mut order = order(&server.url(), 2, http2(1, 1));
        order["load"]["timeout_s"] = json!(2.0);
        let result = run(&order);
        assert_eq!(result["failures"]["malformed"], 2, "{what}: {result:#}");
        let samples = result["failure_samples"].to_string();
        assert!(samples.contains("the answer is not HTTP/2"), "{what}: {samples}");
    }
}

/// Other streams don't mind.
const UNSOUND: [(&str, Answer); 12] = [
    ("no status", |frames, id| frames.fields(id, &[("a", "b")], false)),
    ("two statuses", |frames, id| {
        frames.fields(id, &[(":status", "200"), (":status", "200")], true);
    }),
    ("a status that is none", |frames, id| frames.fields(id, &[(":status", "ok")], true)),
    ("a status behind other fields", |frames, id| {
        frames.fields(id, &[("a", "b"), (":status", "200")], true);
    }),
    ("capitals", |frames, id| frames.fields(id, &[(":status", "200"), ("A", "b")], true)),
    ("a field about the connection", |frames, id| {
        frames.fields(id, &[(":status", "200"), ("connection", "close")], true);
    }),
    ("a preliminary answer that is the last", |frames, id| {
        frames.fields(id, &[(":status", "103")], true);
    }),
    ("a switch to another protocol", |frames, id| {
        frames.fields(id, &[(":status", "101")], false);
    }),
    ("two heads", |frames, id| {
        frames.head(id, 200, None, false);
        frames.head(id, 200, None, false);
    }),
    ("a body without a head", |frames, id| frames.data(id, BODY, true)),
    ("a body that is longer than announced", |frames, id| {
        frames.head(id, 200, Some(BODY.len() - 1), false);
        frames.data(id, BODY, true);
    }),
    ("a body where there is none", |frames, id| {
        frames.head(id, 204, None, false);
        frames.data(id, BODY, true);
    }),
];

#[test]
fn an_unsound_answer_spoils_its_stream_alone() {
    for (what, answer) in UNSOUND {
        let server = server(&[], move |mut frames, _| {
            let mut nth = 0;
            while let Some(id) = frames.request() {
                nth += 1;
                if nth % 2 == 0 {
                    answer(&mut frames, id);
                } else {
                    frames.answer(id, BODY);
                }
            }
        });
        let result = run(&order(&server.url(), COUNT, http2(1, 3)));
        assert_eq!(result["failures"]["malformed"], COUNT / 2, "{what}: {result:#}");
        expect(&result, &[("/requests/completed", COUNT / 2), ("/connections/opened", 1)]);
    }
}

/// A server can't make us work or keep things without end.
#[test]
fn floods_have_an_end() {
    let endless: [(&str, Answer); 4] = [
        ("a head that never ends", |frames, id| {
            frames.frame(HEADERS, 0, id, OK);
            while frames.bytes(&[0, 0, 1, CONTINUATION, 0, 0, 0, 0, id as u8, 0x88].repeat(1000)) {}
        }),
        ("a head that never ends and says nothing", |frames, id| {
            frames.frame(HEADERS, 0, id, OK);
            while frames.bytes(&[0, 0, 0, CONTINUATION, 0, 0, 0, 0, id as u8].repeat(1000)) {}
        }),
        ("a few bytes that stand for many", |frames, id| {
            let entry = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'b'; 4000]].concat();
            frames.frame(HEADERS, 0, id, &entry);
            frames.frame(CONTINUATION, END_HEADERS, id, &[0xbe; 16_000]);
        }),
        ("replies that nobody reads", |frames, _| {
            let ping = [&[0, 0, 8, PING, 0, 0, 0, 0, 0][..], b"anything"].concat();
            while frames.bytes(&ping.repeat(1000)) {}
        }),
    ];
    for (what, flood) in endless {
        let server = server(&[], move |mut frames, _| {
            if let Some(id) = frames.request() {
                flood(&mut frames, id);
            }
            while frames.next().is_some() {}
        });
        let mut order = order(&server.url(), 1, http2(1, 1));
        order["load"]["timeout_s"] = json!(20.0);
        let result = run(&order);
        assert_eq!(result["failures"]["malformed"], 1, "{what}: {result:#}");
    }
}

#[test]
fn a_server_is_told_what_is_wrong_with_it() {
    for (kind, code, answer) in
        [(RST_STREAM, PROTOCOL_ERROR, UNSOUND[0].1), (GOAWAY, FRAME_SIZE_ERROR, BROKEN[17].1)]
    {
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let server = server(&[], move |mut frames, _| {
            let Some(id) = frames.request() else { return };
            answer(&mut frames, id);
            let payload = frames.next_of(kind).map(|frame| frame.payload);
            tell.lock().expect("no panic").send(payload).expect("somebody listens");
        });
        run(&order(&server.url(), 1, http2(1, 1)));
        let payload = told.recv_timeout(Duration::from_secs(10)).expect("a word");
        assert!(payload.expect("a frame").ends_with(&u32::to_be_bytes(code)));
    }
}

#[test]
fn resets_of_streams_that_nobody_opened_are_malformed() {
    let server = server(&[], |mut frames, _| {
        if let Some(id) = frames.request() {
            frames.frame(RST_STREAM, 0, id + 2000, &[0; 4]);
        }
        while frames.next().is_some() {}
    });
    all_fail(&server, "malformed");
    let server = super::server(&[], |mut frames, _| {
        if let Some(id) = frames.request() {
            frames.frame(WINDOW_UPDATE, 0, id, &[0; 3]);
        }
        while frames.next().is_some() {}
    });
    all_fail(&server, "malformed");
}
