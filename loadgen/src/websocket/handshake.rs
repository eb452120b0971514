//! The request to switch to WebSocket, and what makes its answer a right one (RFC 6455 section 4).

use std::hash::{BuildHasher, RandomState};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest, Sha1};

use crate::http1::request::fields;
use crate::order::Request;
use crate::target::Target;

/// Both sides add it to the key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The request but for its key, with which it ends.
pub fn head(request: &Request, target: &Target) -> Box<str> {
    let mut text = format!("GET {} HTTP/1.1\r\n", target.path);
    let mut add = |name: &str, value: &str| text.extend([name, ": ", value, "\r\n"]);
    fields(request, target).for_each(|(name, value)| add(name, value));
    let own =
        [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13")];
    let missing = own.into_iter().filter(|(name, _)| request.header(name).is_none());
    missing.for_each(|(name, value)| add(name, value));
    text.into_boxed_str()
}

/// The whole request, and what the server's `Sec-WebSocket-Accept` has to be.
pub fn request(head: &str) -> (Vec<u8>, String) {
    let key = BASE64_STANDARD.encode([random(), random()].concat());
    let request = format!("{head}Sec-WebSocket-Key: {key}\r\n\r\n");
    (request.into_bytes(), accept(&key))
}

/// What a server makes of a key.
pub fn accept(key: &str) -> String {
    BASE64_STANDARD.encode(Sha1::digest([key, GUID].concat()))
}

/// Bytes that nobody can foresee, without a generator of their own: each state has other keys.
fn random() -> [u8; 8] {
    RandomState::new().hash_one(()).to_ne_bytes()
}

/// A key that masks frames.
pub fn mask() -> [u8; 4] {
    let [a, b, c, d, ..] = random();
    [a, b, c, d]
}

/// Says what is wrong with the head of an answer with status 101.
pub fn check(head: &[u8], accept: &str) -> Result<(), String> {
    let head = String::from_utf8_lossy(head);
    let values = |name: &'static str| {
        let of_name = move |line: &'_ str| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        head.lines().filter_map(of_name).collect::<Vec<_>>()
    };
    let has = |name, wanted: &str| {
        values(name)
            .iter()
            .flat_map(|value| value.split(','))
            .any(|value| value.trim().eq_ignore_ascii_case(wanted))
    };
    if !has("upgrade", "websocket") || !has("connection", "upgrade") {
        return Err("it switches to something else than WebSocket".into());
    }
    if values("sec-websocket-accept") != [accept] {
        return Err("its Sec-WebSocket-Accept is not the one of our key".into());
    }
    if let [extension, ..] = &values("sec-websocket-extensions")[..] {
        return Err(format!("it uses an extension that nobody offered ({extension})"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_proves_that_the_key_was_read() {
        // Of RFC 6455 section 1.3.
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let (one, other) = (request("").0, request("").0);
        assert_ne!(one, other);
    }

    #[test]
    fn wrong_answers_are_named() {
        let answer =
            |fields: &str| check(format!("HTTP/1.1 101 X\r\n{fields}\r\n").as_bytes(), "a=");
        let right = "upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n";
        assert_eq!(answer(&format!("{right}Sec-WebSocket-Accept: a=\r\n")), Ok(()));
        for (fields, why) in [
            ("Connection: Upgrade\r\nSec-WebSocket-Accept: a=\r\n".to_owned(), "something else"),
            (format!("{right}Sec-WebSocket-Accept: b=\r\n"), "Sec-WebSocket-Accept"),
            (right.to_owned(), "Sec-WebSocket-Accept"),
            (
                format!("{right}Sec-WebSocket-Accept: a=\r\nSec-WebSocket-Extensions: x\r\n"),
                "nobody offered (x)",
            ),
        ] {
            assert!(answer(&fields).is_err_and(|error| error.contains(why)), "{fields}");
        }
    }
}
