//! Answers: how long they are, how they come, and what is wrong with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{COUNT, all_complete, all_fail};
use crate::support::{HELLO, Server, expect, number, order, run};

#[test]
fn truncated_bodies() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    });
    all_fail(&server, "truncated");
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n");
    });
    all_fail(&server, "truncated");
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nContent-Le");
    });
    all_fail(&server, "truncated");
}

#[test]
fn large_truncated_bodies() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        client.write(&vec![b'x'; 999_999]);
    });
    all_fail(&server, "truncated");
}

#[test]
fn garbage() {
    all_fail(&Server::answering("SSH-2.0-OpenSSH_9.2\r\n"), "malformed");
    all_fail(&Server::answering(vec![0xff; 300]), "malformed");
    all_fail(&Server::answering("HTTP/1.1 200 OK\r\nno colon here\r\n\r\n"), "malformed");
}

/// What it speaks instead is known by its first bytes.
#[test]
fn other_protocols_are_named() {
    let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];
    for (bytes, why) in [
        (&settings[..], "speaks HTTP/2 there: ask so (--http2"),
        (&[21, 3, 3, 0, 2, 2, 70], "https://"),
    ] {
        let result = run(&order(&Server::answering(bytes).url(), 1, json!({})));
        expect(&result, &[("/failures/malformed", 1)]);
        assert!(result["failure_samples"].to_string().contains(why), "{result:#}");
    }
}

/// Any other piece may begin within a secret that the server repeats.
#[test]
fn an_answers_beginning_alone_is_shown() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", ""),
        ("HTTP/1.1 403 No\r\nContent-Length: 6\r\n\r\nse", "cret"),
        ("HTTP/1.1 403 No\r\nX: se", "cret\r\nContent-Length: 0\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nse", "cret\r\ncret\r\n"),
        ("HTTP/1.1 200 OK\r\nX: se", "cret\r\nno colon here\r\n\r\n"),
    ];
    for (begin, rest) in cases {
        let server = Server::start(move |mut client| {
            while client.request().is_some() {
                client.write(begin.as_bytes());
                std::thread::sleep(Duration::from_millis(100));
                client.write(rest.as_bytes());
                client.write(b"secret");
            }
        });
        let request = json!({"url": server.url(), "expect": {"status": [200], "body_bytes": 5}});
        let result = run(&order(&server.url(), 1, json!({"requests": [request]})));
        let samples = result["failure_samples"].to_string();
        assert!(samples.contains("http://") && !samples.contains("cret"), "{begin}: {samples}");
        let server = Server::answering([begin, rest].concat());
        let request = json!({"url": server.url(), "expect": {"status": [200], "body_bytes": 5}});
        let result = run(&order(&server.url(), 1, json!({"requests": [request]})));
        let samples = result["failure_samples"].to_string();
        assert!(rest.is_empty() || samples.contains("read: HTTP/1.1 "), "{begin}: {samples}");
    }
}

#[test]
fn a_head_without_end() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\n");
        for _ in 0..300_000 / 1_000 {
            client.write(format!("X: {}\r\n", "y".repeat(995)).as_bytes());
        }
        client.request();
    });
    all_fail(&server, "malformed");
}

#[test]
fn contradictory_lengths() {
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: minus one",
        "Content-Length: 99999999999999999999",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nHello");
        all_fail(&Server::answering(answer), "malformed");
    }
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nHello";
    all_complete(&Server::answering(answer), COUNT, 5);
}

#[test]
fn bytes_after_the_end() {
    let mut answer = HELLO.to_vec();
    answer.extend_from_slice(b"more");
    all_fail(&Server::answering(answer), "malformed");
    all_fail(&Server::answering("HTTP/1.1 204 No Content\r\n\r\nbody"), "malformed");
    all_fail(
        &Server::answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX"),
        "malformed",
    );
}

#[test]
fn bodies_where_none_belongs() {
    for status in ["204 No Content", "304 Not Modified"] {
        for length in ["", "Content-Length: 4\r\n"] {
            let answer = format!("HTTP/1.1 {status}\r\n{length}\r\nbody");
            all_fail(&Server::answering(answer), "malformed");
        }
    }
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
    let more = json!({"requests": [{"url": server.url(), "method": "HEAD"}]});
    let result = run(&order(&server.url(), COUNT, more));
    expect(&result, &[("/requests/completed", 0), ("/failures/malformed", COUNT)]);
}

#[test]
fn statuses_without_a_body() {
    let empty = "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n";
    all_complete(&Server::answering(empty), COUNT, 0);
    let server = Server::answering("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
    let more = json!({"requests": [{"url": server.url(), "expect": {"status": [304]}}]});
    expect(&run(&order(&server.url(), COUNT, more)), &[("/requests/completed", COUNT)]);
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    let more = json!({"requests": [{"url": server.url(), "method": "HEAD"}]});
    expect(&run(&order(&server.url(), COUNT, more)), &[("/requests/completed", COUNT)]);
}

#[test]
fn chunks_one_byte_at_a_time() {
    let server = Server::start(|mut client| {
        while client.request().is_some() {
            let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                           5;name=\"value\"\r\nHello\r\n8\r\n, World!\r\n0\r\nTrailer: x\r\n\r\n";
            answer.iter().for_each(|byte| client.write(&[*byte]));
        }
    });
    all_complete(&server, 5, 13);
}

/// The kernel drops what is left of such a chunk, and what follows belongs to the answer.
#[test]
fn large_chunks() {
    let chunk = "x".repeat(200_000);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         30d40\r\n{chunk}\r\n30d40\r\n{chunk}\r\n0\r\n\r\n"
    );
    all_complete(&Server::answering(answer), COUNT, 400_000);
}

#[test]
fn broken_chunks() {
    for chunks in ["-1\r\n", "ffffffffffffffffff\r\n", ";x\r\n", "5\r\nHelloX\r\n", "x\r\n"] {
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        all_fail(&Server::answering(answer), "malformed");
    }
}

#[test]
fn chunk_extensions_and_trailers() {
    let long = "x".repeat(2000);
    for (extension, trailer) in [
        ("", "Expires: 0\r\nX-Checksum: 1:2\r\n"),
        (";a", ""),
        ("; a = \"b;c\" ; d", "X: \r\n"),
        (&format!(";{long}"), &format!("X: {long}\r\n")),
    ] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n\
             5{extension}\r\nHello\r\n0{extension}\r\n{trailer}\r\n"
        );
        all_complete(&Server::answering(answer), COUNT, 5);
    }
}

#[test]
fn every_split_of_an_answer() {
    splits_change_nothing(
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n\
          Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    splits_change_nothing(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nServer: x\r\n\r\nabc");
}

/// Comes in two parts, divided at each place in turn.
fn splits_change_nothing(answer: &'static [u8]) {
    let server = Server::start(move |mut client| {
        for split in 1..answer.len() {
            if client.request().is_none() {
                return;
            }
            client.write(&answer[..split]);
            std::thread::sleep(Duration::from_micros(300));
            client.write(&answer[split..]);
        }
    });
    all_complete(&server, answer.len() as u64 - 1, 3);
}

#[test]
fn any_number_of_header_lines() {
    let server = Server::start(|mut client| {
        for lines in 1..=500 {
            if client.request().is_none() {
                return;
            }
            let fields: String =
                (1..lines).map(|n| format!("X-Field-{n}: value {n}\r\n")).collect();
            client.write(
                format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok").as_bytes(),
            );
        }
    });
    all_complete(&server, 500, 2);
}

#[test]
fn interim_answers() {
    let mut answer = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    for _ in 0..3 {
        answer.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n");
    }
    answer.extend_from_slice(HELLO);
    all_complete(&Server::answering(answer), COUNT, 13);
}

#[test]
fn interim_answers_without_end() {
    let server = Server::start(|mut client| {
        client.request();
        let interim = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100);
        while std::io::Write::write_all(&mut client.stream, &interim).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let result = run(&order(&server.url(), 2, json!({"load": {"timeout_s": 0.1}})));
    expect(&result, &[("/failures/timeout", 2)]);
}

#[test]
fn bodies_that_end_with_the_connection() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\n\r\n");
        client.write(&vec![b'x'; 100_000]);
    });
    all_complete(&server, COUNT, 100_000);
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    all_complete(&server, COUNT, 2);
}

#[test]
fn wrong_answers() {
    let server = Server::answering("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
    let result = run(&order(&server.url(), COUNT, json!({})));
    // A wrong answer is an answer: its connection stays in use.
    expect(
        &result,
        &[("/failures/status", COUNT), ("/by_status/404", COUNT), ("/connections/opened", 1)],
    );
    let sha256 = "dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f";
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let server = Server::start(move |mut client| {
        while client.request().is_some() {
            let altered = counter.fetch_add(1, Ordering::Relaxed) >= 256;
            let answer =
                String::from_utf8_lossy(HELLO).replace('!', if altered { "?" } else { "!" });
            client.write(answer.as_bytes());
        }
    });
    let expected = json!({"body_bytes": 13, "body_sha256": sha256});
    let more = json!({"requests": [{"url": server.url(), "expect": expected}]});
    let result = run(&order(&server.url(), 600, more));
    // Of 600 answers the first, the 257th and the 513th are checksummed.
    expect(&result, &[("/failures/body", 2), ("/requests/completed", 598)]);
}

/// A server that always has something to say keeps neither the others nor the slot's end waiting.
#[test]
fn endless_answers_beside_others() {
    let beginnings: [(&[u8], &[u8]); 2] = [
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ];
    for (head, piece) in beginnings {
        let server = Server::start(move |mut client| {
            if client.number > 1 {
                return client.answer_all(HELLO);
            }
            client.request();
            client.write(head);
            let pieces = piece.repeat(10_000);
            while std::io::Write::write_all(&mut client.stream, &pieces).is_ok() {}
        });
        let load = json!({"connections": 4, "timeout_s": 0.2});
        let more = json!({"duration_s": 0.6, "count": null, "load": load});
        let result = run(&order(&server.url(), 1, more));
        expect(&result, &[("/failures/timeout", 2)]);
        assert_eq!(result["ended_by"], "duration");
        assert!(number(&result, "/requests/completed") > 0, "{result:#}");
    }
}

/// Such a body is dropped in the kernel, and what follows it would be the next answer.
#[test]
fn bytes_behind_a_large_body_are_seen() {
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n".to_vec();
    answer.extend(vec![b'x'; 200_000]);
    answer.extend(HELLO);
    let result = run(&order(&Server::answering(answer).url(), COUNT, json!({})));
    expect(&result, &[("/requests/completed", 0), ("/failures/malformed", COUNT)]);
}
