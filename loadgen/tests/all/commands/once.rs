//! `loadgen run --once`.

use std::io::{Read, Write};
use std::thread::sleep;
use std::time::Duration;

use super::{output, stderr};
use crate::http2;
use crate::layers::frames::Frames;
use crate::layers::quic::Quic;
use crate::layers::secure::Secure;
use crate::layers::websocket::Socket;
use crate::support::{HELLO, Server};

/// What it prints of a request that gets no valid response.
fn shown_as_invalid(args: &[&str]) -> String {
    let shown = output(&[&["run", "--once", "--timeout", "300ms"], args].concat());
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert_eq!(shown.status.code(), Some(1), "{text}{}", stderr(&shown));
    text
}

#[test]
fn one_request_is_shown_whole() {
    let server = Server::answering(HELLO);
    let shown = output(&["run", "--once", "-u", "me:secret", "--compressed", &server.url()]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{text}{}", stderr(&shown));
    for line in [
        "> GET / HTTP/1.1\n",
        "> Authorization: Basic bWU6c2VjcmV0\n",
        "> Accept-Encoding: gzip, deflate, br, zstd\n",
        "< Content-Length: 13\n",
        "\nHello, World!\n",
        "\nvalid\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let shown = output(&["run", "--once", "--expect-bytes", "5", &server.url()]);
    assert_eq!(shown.status.code(), Some(1));
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("not valid: ") && text.contains("instead of 5"), "{text}");
}

#[test]
fn a_message_is_shown_with_its_handshake() {
    let server = Server::start(|client| {
        Socket::begin(client).into_iter().for_each(|mut socket| socket.echo_all());
    });
    let url = format!("ws://{}/chat", server.address);
    let shown = output(&["run", "--once", "--message", "hi there", &url]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{text}{}", stderr(&shown));
    for line in [
        "> GET /chat HTTP/1.1\n",
        "> Upgrade: websocket\n",
        "> hi there\n",
        "< HTTP/1.1 101 Switching Protocols\n",
        "\nhi there\n",
        "\nvalid\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let table = output(&["run", "-n", "10", "-c", "1", "--message", "hi", &url]);
    let text = String::from_utf8_lossy(&table.stdout);
    for words in
        ["messages received/s over", "\nMessages       10 sent, 10 completed", "\nWebSocket "]
    {
        assert!(text.contains(words), "{words:?} in {text}");
    }
    let server = Server::answering("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nThere");
    let url = format!("ws://{}/chat", server.address);
    let text = shown_as_invalid(&["--message", "hi", &url]);
    for words in ["< HTTP/1.1 404 Not Found\n", "status 404 instead of 101", "There"] {
        assert!(text.contains(words), "{words:?} in {text}");
    }
}

#[test]
fn one_request_that_gets_no_whole_response_says_why() {
    for (bytes, why) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHe"[..], "closed the connection"),
        (b"SSH-2.0-x\r\n\r\n", "status line"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "more bytes"),
    ] {
        let server = Server::start(move |mut client| {
            client.request();
            client.write(bytes);
        });
        let shown = output(&["run", "--once", &server.url()]);
        let text = String::from_utf8_lossy(&shown.stdout);
        assert_eq!(shown.status.code(), Some(1), "{text}");
        assert!(text.contains("> GET / HTTP/1.1\n") && text.contains(why), "{text}");
    }
    let refused = output(&["run", "--once", "http://127.0.0.1:9/"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// The timeout is of the whole request, whatever comes meanwhile, and what came is shown.
#[test]
fn one_request_whose_response_has_no_end_is_shown_as_far_as_it_came() {
    for (piece, pause) in [(16, Duration::from_millis(20)), (65_536, Duration::ZERO)] {
        let server = Server::start(move |mut client| {
            client.request();
            client.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
            while client.stream.write_all(&b"drip ".repeat(piece)).is_ok() {
                sleep(pause);
            }
        });
        let text = shown_as_invalid(&[&server.url()]);
        for part in ["< HTTP/1.1 200 OK\n", "drip drip", "no full answer within 0.3 s", "--timeout"]
        {
            assert!(text.contains(part), "{part:?} in {text:.2000}");
        }
    }
    // Of a head without an end as well.
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\n");
        while client.stream.write_all(b"X: y\r\n").is_ok() {
            sleep(Duration::from_millis(20));
        }
    });
    assert!(shown_as_invalid(&[&server.url()]).contains("no full answer within 0.3 s"));
}

#[test]
fn one_request_over_http2_is_shown_whole() {
    let plain = http2::server(&[], |mut frames, _| frames.answer_all(b"Hello, World!"));
    let secure = Secure::start(&["h2"], |session| {
        if let Some(mut frames) = Frames::begin(session.stream, &[]) {
            frames.answer_all(b"Hello, World!");
        }
    });
    for args in [&[plain.url()][..], &[secure.url(), "--tls-verify".into(), "off".into()]] {
        let args = args.iter().map(String::as_str);
        let shown =
            output(&["run", "--once", "--http2"].into_iter().chain(args).collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&shown.stdout);
        assert_eq!(shown.status.code(), Some(0), "{text}{}", stderr(&shown));
        for line in ["> :method: GET\n", "< :status: 200\n", "\nHello, World!\n", "\nvalid\n"] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
    }
}

#[test]
fn one_request_over_http2_that_gets_no_whole_response_says_why() {
    let dripping = http2::server(&[], |mut frames, _| {
        let Some(id) = frames.request() else { return };
        frames.head(id, 200, None, false);
        while frames.wrote_data(id, b"drip ") {
            sleep(Duration::from_millis(20));
        }
    });
    let resetting = http2::server(&[], |mut frames, _| {
        while let Some(id) = frames.request() {
            frames.reset(id, 2);
        }
    });
    let silent = Server::start(|mut client| {
        let _ = client.stream.read_to_end(&mut Vec::new());
    });
    for (url, parts) in [
        (dripping.url(), &["< :status: 200\n", "drip drip", "no full answer within 0.3 s"][..]),
        (resetting.url(), &["the server reset the stream"]),
        (Server::answering(HELLO).url(), &["doesn't speak HTTP/2"]),
        (silent.url(), &["HTTP/2 didn't begin within 0.3 s"]),
    ] {
        let text = shown_as_invalid(&["--http2", &url]);
        for part in parts {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }
}

#[test]
fn one_request_over_http3_is_shown_whole() {
    let server = Quic::start(|mut session| {
        while let Some(id) = session.request() {
            session.answer(id, 200, b"Hello, World!");
        }
    });
    let ca = server.authority.file().display().to_string();
    let shown = output(&["run", "--once", "--http3", "--cacert", &ca, &server.url()]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{text}{}", stderr(&shown));
    for line in [
        "> :method: GET\n",
        "< :status: 200\n",
        "< content-length: 13\n",
        "\nHello, World!\n",
        "\nvalid\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let silent = Quic::start(|mut session| while session.request().is_some() {});
    let untrusted = output(&["run", "--once", "--http3", "--cacert", &ca, &silent.url()]);
    assert_eq!(untrusted.status.code(), Some(2));
    assert!(stderr(&untrusted).contains("nobody trusted has issued it"), "{}", stderr(&untrusted));
    let ca = silent.authority.file().display().to_string();
    let text = shown_as_invalid(&["--http3", "--cacert", &ca, &silent.url()]);
    assert!(text.contains("no full answer within 0.3 s"), "{text}");
}
