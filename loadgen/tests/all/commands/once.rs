//! `loadgen run --once`.

use super::{output, stderr};
use crate::support::{HELLO, Server};

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
