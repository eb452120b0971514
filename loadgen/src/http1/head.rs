//! The head of an answer: status line and header fields (RFC 9112 sections 3 to 6).

use memchr::memchr;
use thiserror::Error;

use crate::websocket::frame::Fault;

/// A head longer than this is refused as malformed.
pub const MAX_HEAD_BYTES: usize = 256 * 1024;

/// Why an answer is not HTTP/1.1, or not the WebSocket that it was switched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    #[error("the status line is not HTTP/1.x with a three-digit status")]
    StatusLine,
    #[error("a header line is not `name: value`")]
    HeaderLine,
    #[error("the head is longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLong,
    #[error("Content-Length is not one number, or several that differ")]
    ContentLength,
    #[error("both Content-Length and Transfer-Encoding are given")]
    TwoLengths,
    #[error("status 101 though no protocol change was asked for")]
    Upgrade,
    #[error("a chunk's size line or end is wrong")]
    Chunk,
    #[error("the trailer section is longer than {MAX_HEAD_BYTES} bytes")]
    TrailerTooLong,
    #[error("bytes follow the end of the answer")]
    Surplus,
    #[error("{0}")]
    Frame(#[from] Fault),
}

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// What of a request decides how its answer is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    /// HEAD: the answer has no body.
    pub head: bool,
    /// It has an `Upgrade` field: status 101 ends the exchange (RFC 9110 section 7.8).
    pub upgrade: bool,
}

/// The status of an answer after which another protocol is spoken.
pub const SWITCHING: u16 = 101;

/// What of a head decides how to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub framing: Framing,
    /// The server leaves the connection open after this answer.
    pub keep_alive: bool,
    /// Bytes of the head, the empty line included.
    pub len: usize,
    /// Where the value of the `Date` field begins, if it has the usual 29 bytes.
    pub date_at: Option<usize>,
}

impl Head {
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != SWITCHING
    }
}

/// Length of an IMF-fixdate (RFC 9110 section 5.6.7).
pub const DATE_BYTES: usize = 29;

#[derive(Default)]
struct Fields {
    content_length: Option<u64>,
    transfer_encoding: bool,
    chunked_last: bool,
    close: bool,
    keep_alive: bool,
    date_at: Option<usize>,
}

/// Parses a head at the start of `input`; `None` when it is not complete yet.
pub fn parse(input: &[u8], asked: Asked) -> Result<Option<Head>, Malformed> {
    let Some((line, mut at)) = line_at(input, 0) else {
        return check_beginning(input).map(|()| None);
    };
    let (minor, status) = status_line(line)?;
    let mut fields = Fields::default();
    loop {
        let Some((line, next)) = line_at(input, at) else {
            return too_long(input.len()).map(|()| None);
        };
        if line.is_empty() {
            return finish(minor, status, fields, next, asked).map(Some);
        }
        if input.get(next).is_some_and(|byte| !is_fold(*byte)) {
            fields.read(line, at)?;
            at = next;
            continue;
        }
        let Some((whole, next)) = unfolded(input, line, next) else {
            return too_long(input.len()).map(|()| None);
        };
        let date_at = fields.date_at;
        fields.read(&whole, at)?;
        fields.date_at = date_at;
        at = next;
    }
}

/// A line that begins so goes on with the field before it.
fn is_fold(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// A field that is folded over several lines, with a space for each fold (RFC 9112 section 5.2), and
/// where the next line begins; nothing when the last line isn't complete.
fn unfolded(input: &[u8], first: &[u8], mut at: usize) -> Option<(Vec<u8>, usize)> {
    let mut whole = first.to_vec();
    while is_fold(*input.get(at)?) {
        let (line, next) = line_at(input, at)?;
        whole.push(b' ');
        whole.extend_from_slice(line.trim_ascii());
        at = next;
    }
    Some((whole, at))
}

/// The line that begins at `at`, without its end, and where the next one begins.
/// A single LF ends a line too (RFC 9112 section 2.2).
fn line_at(input: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = &input[at..];
    let end = memchr(b'\n', rest)?;
    let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
    Some((line, at + end + 1))
}

/// Refuses a first line that can no longer become a status line, so that garbage is seen at once.
fn check_beginning(input: &[u8]) -> Result<(), Malformed> {
    let begins = b"HTTP/1.";
    let known = input.len().min(begins.len());
    if input[..known] != begins[..known] {
        return Err(Malformed::StatusLine);
    }
    too_long(input.len())
}

fn too_long(bytes: usize) -> Result<(), Malformed> {
    if bytes > MAX_HEAD_BYTES { Err(Malformed::HeadTooLong) } else { Ok(()) }
}

fn status_line(line: &[u8]) -> Result<(u8, u16), Malformed> {
    let rest = line.strip_prefix(b"HTTP/1.").ok_or(Malformed::StatusLine)?;
    let [minor @ (b'0' | b'1'), b' ', a, b, c, reason @ ..] = rest else {
        return Err(Malformed::StatusLine);
    };
    let digits = [*a, *b, *c];
    let well_formed = digits.iter().all(u8::is_ascii_digit)
        && *a != b'0'
        && (reason.is_empty() || reason[0] == b' ');
    if !well_formed {
        return Err(Malformed::StatusLine);
    }
    let status = digits.iter().fold(0, |sum, d| sum * 10 + u16::from(d - b'0'));
    Ok((minor - b'0', status))
}

impl Fields {
    fn read(&mut self, line: &[u8], line_at: usize) -> Result<(), Malformed> {
        let colon = memchr(b':', line).ok_or(Malformed::HeaderLine)?;
        let name = &line[..colon];
        if name.is_empty() || !name.iter().all(|b| is_token(*b)) {
            return Err(Malformed::HeaderLine);
        }
        let value = line[colon + 1..].trim_ascii();
        if value.iter().any(|b| (*b < b' ' && *b != b'\t') || *b == 0x7f) {
            return Err(Malformed::HeaderLine);
        }
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"date") => self.date(line, value, line_at),
            10 if name.eq_ignore_ascii_case(b"connection") => self.connection(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => self.length(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.encoding(value),
            _ => {}
        }
        Ok(())
    }

    fn date(&mut self, line: &[u8], value: &[u8], line_at: usize) {
        let begin = line.len() - line.trim_ascii_end().len();
        if value.len() == DATE_BYTES && begin == 0 {
            self.date_at = Some(line_at + line.len() - DATE_BYTES);
        }
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Equal repeated lengths are one length; anything else is an error (RFC 9112 section 6.3).
    fn length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        for part in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
            let length = decimal(part).ok_or(Malformed::ContentLength)?;
            if self.content_length.is_some_and(|known| known != length) {
                return Err(Malformed::ContentLength);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    fn encoding(&mut self, value: &[u8]) {
        self.transfer_encoding = true;
        let last = value.rsplit(|b| *b == b',').next().unwrap_or_default();
        self.chunked_last = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
    }
}

fn finish(
    minor: u8,
    status: u16,
    fields: Fields,
    len: usize,
    asked: Asked,
) -> Result<Head, Malformed> {
    too_long(len)?;
    if status == SWITCHING && !asked.upgrade {
        return Err(Malformed::Upgrade);
    }
    if fields.transfer_encoding && fields.content_length.is_some() {
        return Err(Malformed::TwoLengths);
    }
    let bodiless = asked.head || status < 200 || status == 204 || status == 304;
    let framing = match fields.content_length {
        _ if bodiless => Framing::Length(0),
        _ if fields.chunked_last => Framing::Chunked,
        Some(length) => Framing::Length(length),
        None => Framing::UntilClose,
    };
    // HTTP/1.0 with a transfer coding: read it, then close (RFC 9112 section 6.1).
    let stays_open =
        if minor == 0 { fields.keep_alive && !fields.transfer_encoding } else { !fields.close };
    let keep_alive =
        stays_open && !fields.close && framing != Framing::UntilClose && status != SWITCHING;
    Ok(Head { status, framing, keep_alive, len, date_at: fields.date_at })
}

fn decimal(digits: &[u8]) -> Option<u64> {
    // `parse` alone takes a sign, too.
    let text = str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    text.parse().ok()
}

/// `tchar` of RFC 9110 section 5.6.2.
pub fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Option<Head>, Malformed> {
        parse(text.as_bytes(), Asked::default())
    }

    fn framing(fields: &str) -> Result<Framing, Malformed> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        head(&text).map(|head| head.expect("complete").framing)
    }

    #[test]
    fn reads_what_nginx_sends() {
        let text = "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sat, 21 Nov 2026 20:24:09 GMT\r\n\
                    Content-Length: 13\r\nConnection: keep-alive\r\n\r\n";
        let head = head(text).expect("well formed").expect("complete");
        assert_eq!((head.status, head.framing), (200, Framing::Length(13)));
        assert!(head.keep_alive);
        assert_eq!(head.len, text.len());
        let at = head.date_at.expect("a date");
        assert_eq!(&text[at..at + DATE_BYTES], "Sat, 21 Nov 2026 20:24:09 GMT");
    }

    #[test]
    fn every_prefix_is_incomplete() {
        let text = "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(head(&text[..end]), Ok(None), "prefix of {end}");
        }
    }

    #[test]
    fn lengths() {
        assert_eq!(framing("Content-Length: 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(framing("content-length: 5, 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(framing("Content-Length: 5\r\nContent-Length: 5\r\n"), Ok(Framing::Length(5)));
        for bad in ["5\r\nContent-Length: 6", "-1", "", "5 5", "99999999999999999999", "+5"] {
            let fields = format!("Content-Length: {bad}\r\n");
            assert_eq!(framing(&fields), Err(Malformed::ContentLength), "{bad:?}");
        }
        assert_eq!(
            framing("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
            Err(Malformed::TwoLengths)
        );
        assert_eq!(framing("Transfer-Encoding: gzip, Chunked\r\n"), Ok(Framing::Chunked));
        assert_eq!(framing("Transfer-Encoding: gzip\r\n"), Ok(Framing::UntilClose));
        assert_eq!(framing(""), Ok(Framing::UntilClose));
    }

    #[test]
    fn connection_options() {
        let open = |text: &str| head(text).expect("well formed").expect("complete").keep_alive;
        assert!(open("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"));
        assert!(!open("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n"));
        assert!(!open("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(open("HTTP/1.0 200 OK\nContent-Length: 0\nConnection: Keep-Alive\n\n"));
    }

    #[test]
    fn refuses_what_is_not_http() {
        for bad in ["SSH-2.0-x", "HTTP/2 200 OK\r\n", "HTTP/1.1 20 OK\r\n", "HTTP/1.1 2000\r\n"] {
            assert_eq!(head(bad), Err(Malformed::StatusLine), "{bad:?}");
        }
        for bad in ["no colon", ": empty name", "bad name: x", " folded: x", "A: b\0c"] {
            let text = format!("HTTP/1.1 200 OK\r\n{bad}\r\n\r\n");
            assert_eq!(head(&text), Err(Malformed::HeaderLine), "{bad:?}");
        }
        assert_eq!(head("HTTP/1.1 101 Go\r\n\r\n"), Err(Malformed::Upgrade));
    }

    #[test]
    fn a_switch_of_protocols_ends_the_exchange_where_it_was_asked_for() {
        let asked = Asked { head: false, upgrade: true };
        let head = parse(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", asked);
        let head = head.expect("well formed").expect("complete");
        assert_eq!((head.status, head.is_interim(), head.keep_alive), (101, false, false));
    }

    #[test]
    fn folded_lines_are_one_field() {
        let text = "HTTP/1.1 200 OK\r\nServer: a\r\n\tb\r\n c\r\nContent-Length:\r\n 5\r\n\r\n";
        let head = parse(text.as_bytes(), Asked::default()).expect("well formed").expect("whole");
        assert_eq!((head.framing, head.len), (Framing::Length(5), text.len()));
        for end in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..end], Asked::default()), Ok(None), "{end}");
        }
    }

    #[test]
    fn no_body_after_head_204_and_304() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        let asked = Asked { head: true, upgrade: false };
        let head = parse(text.as_bytes(), asked).expect("well formed").expect("complete");
        assert_eq!(head.framing, Framing::Length(0));
        for status in [204, 304] {
            let text = format!("HTTP/1.1 {status} x\r\nContent-Length: 9\r\n\r\n");
            assert_eq!(super::tests::head(&text).unwrap().unwrap().framing, Framing::Length(0));
        }
    }

    #[test]
    fn five_hundred_lines_are_fine_and_too_many_bytes_are_not() {
        let lines: String = (0..500).map(|n| format!("X-{n}: {n}\r\n")).collect();
        assert_eq!(framing(&lines), Ok(Framing::UntilClose));
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(MAX_HEAD_BYTES));
        assert_eq!(head(&endless), Err(Malformed::HeadTooLong));
    }
}
